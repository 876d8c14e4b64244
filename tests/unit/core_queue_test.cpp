// SPDX-License-Identifier: BSD-2-Clause
// Work queues and completion rings: order, exactly-once, overflow, flush, and many threads.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <map>
#include <thread>
#include <vector>

#include "core/vi/vi_core.hpp"

namespace viaduct {
namespace {

// What the user agent was told.
std::vector<WorkQueue*> woken, overflowed, failed;

const ViEvents kRecorder = {
    [](ViCore&, VIP_ERROR_CODE, VIP_RESOURCE_CODE, VIP_ULONG, VIP_DESCRIPTOR*) {},
    [](ViCore&) {},
    [](WorkQueue& q) { woken.push_back(&q); },
    [](WorkQueue& q) { overflowed.push_back(&q); },
    [](WorkQueue& q, const VIP_DESCRIPTOR*, uint32_t) { failed.push_back(&q); },
};

class Queues : public ::testing::Test {
protected:
    void SetUp() override {
        woken.clear();
        overflowed.clear();
        failed.clear();
        vi_.events = &kRecorder;
        for (WorkQueue* q : {&vi_.recv, &vi_.send}) {
            ASSERT_TRUE(q->allocate(8));
            q->vi = &vi_;
        }
        vi_.recv.is_receive = true;
        std::memset(descriptors_, 0, sizeof descriptors_);
    }

    ViCore vi_;
    CompletionTarget cq_;
    alignas(64) VIP_DESCRIPTOR descriptors_[8];
};

TEST_F(Queues, TakeOnlyPowersOfTwo) {
    WorkQueue q;
    EXPECT_FALSE(q.allocate(0));
    EXPECT_FALSE(q.allocate(3));
    EXPECT_TRUE(q.allocate(1));
    EXPECT_EQ(q.depth(), 1u);
    EXPECT_TRUE(q.allocate(1024));
    EXPECT_EQ(q.depth(), 1024u);
}

TEST_F(Queues, HandBackEachDescriptorOnceInOrder) {
    WorkQueue& q = vi_.send;
    for (int round = 0; round < 1000; ++round) {
        EXPECT_TRUE(q.empty());
        for (auto& d : descriptors_) q.push(&d);
        ASSERT_TRUE(q.full());
        for (uint32_t i = 0; i < 8; ++i) {
            ASSERT_FALSE(q.head_complete());
            ASSERT_EQ(q.next_untaken(), &descriptors_[i]);
            ++q.taken;
            const uint32_t error = i == 3 ? VIP_STATUS_LENGTH_ERROR : 0;
            complete_head(q, VIP_STATUS_OP_SEND | error, i);
            ASSERT_TRUE(q.head_complete());
            bool in_error = false;
            ASSERT_EQ(q.dequeue(&in_error), &descriptors_[i]);
            ASSERT_EQ(in_error, i == 3);
            ASSERT_EQ(descriptors_[i].CS.Status, VIP_STATUS_DONE | error);
            ASSERT_EQ(descriptors_[i].CS.Length, i);
        }
    }
    EXPECT_FALSE(failed.empty()) << "the user agent is told of the one in error";
}

TEST_F(Queues, CountersMayWrap) {
    WorkQueue& q = vi_.send;
    q.posted = q.taken = q.completed = q.dequeued = UINT32_MAX - 2;
    for (auto& d : descriptors_) q.push(&d);
    EXPECT_TRUE(q.full());
    q.taken += 8;
    for (uint32_t i = 0; i < 8; ++i) complete_head(q, 0, 0);
    for (auto& d : descriptors_) {
        bool in_error = true;
        ASSERT_TRUE(q.head_complete());
        EXPECT_EQ(q.dequeue(&in_error), &d);
        EXPECT_FALSE(in_error);
    }
    EXPECT_TRUE(q.empty());
}

TEST_F(Queues, FlushInPostingOrderAfterWhatIsFinished) {  // spec/states 3
    WorkQueue& q = vi_.send;
    ASSERT_TRUE(cq_.ring.allocate(8));
    q.cq = &cq_;
    descriptors_[1].CS.Control = VIP_CONTROL_OP_RDMAWRITE;
    descriptors_[2].CS.Control = VIP_CONTROL_OP_RDMAREAD;
    for (int i = 0; i < 4; ++i) q.push(&descriptors_[i]);
    ++q.taken;
    complete_head(q, VIP_STATUS_OP_SEND, 5);
    flush_queue(q);
    EXPECT_TRUE(failed.empty()) << "a flush is no failure of its own";
    EXPECT_EQ(descriptors_[0].CS.Status, uint32_t{VIP_STATUS_DONE}) << "keeps its real status";
    const uint32_t flushed = VIP_STATUS_DONE | VIP_STATUS_DESC_FLUSHED_ERROR;
    EXPECT_EQ(descriptors_[1].CS.Status, flushed | VIP_STATUS_OP_RDMA_WRITE);
    EXPECT_EQ(descriptors_[2].CS.Status, flushed | VIP_STATUS_OP_RDMA_READ);
    EXPECT_EQ(descriptors_[3].CS.Status, flushed | VIP_STATUS_OP_SEND);
    EXPECT_EQ(descriptors_[3].CS.Length, 0u);
    EXPECT_EQ(cq_.ring.size(), 4u) << "each flushed descriptor is one entry";
    EXPECT_FALSE(q.has_untaken());
    bool in_error = false;
    EXPECT_EQ(q.dequeue(&in_error), &descriptors_[0]);
    EXPECT_FALSE(in_error);
    EXPECT_EQ(q.dequeue(&in_error), &descriptors_[1]);
    EXPECT_TRUE(in_error);

    WorkQueue& r = vi_.recv;
    descriptors_[5].CS.Control = VIP_CONTROL_OP_RDMAREAD;  // nonsense on a receive queue
    r.push(&descriptors_[5]);
    flush_queue(r);
    EXPECT_EQ(descriptors_[5].CS.Status, flushed | VIP_STATUS_OP_RECEIVE);
    flush_queue(r);
    EXPECT_EQ(r.completed, 1u) << "nothing left to flush";
}

TEST_F(Queues, TellSleepersOfTheQueueOrOfItsCq) {
    vi_.send.push(&descriptors_[0]);
    vi_.send.push(&descriptors_[1]);
    vi_.send.taken = 2;
    complete_head(vi_.send, 0, 0);
    EXPECT_TRUE(woken.empty()) << "no thread sleeps";
    vi_.send.sleepers = 1;
    complete_head(vi_.send, 0, 0);
    EXPECT_EQ(woken, std::vector<WorkQueue*>{&vi_.send});

    woken.clear();
    ASSERT_TRUE(cq_.ring.allocate(2));
    vi_.recv.cq = &cq_;
    cq_.sleepers = 1;
    vi_.recv.push(&descriptors_[2]);
    vi_.recv.taken = 1;
    complete_head(vi_.recv, VIP_STATUS_OP_RECEIVE, 0);
    EXPECT_EQ(woken, std::vector<WorkQueue*>{&vi_.recv});
    EXPECT_EQ(cq_.ring.pop(), &vi_.recv);
}

TEST_F(Queues, ReportALostCqEntryAndOverwriteNothing) {  // spec/calls 4.7 rule 5
    ASSERT_TRUE(cq_.ring.allocate(1));
    vi_.send.cq = &cq_;
    vi_.send.push(&descriptors_[0]);
    vi_.send.push(&descriptors_[1]);
    vi_.send.taken = 2;
    complete_head(vi_.send, 0, 0);
    EXPECT_TRUE(overflowed.empty());
    complete_head(vi_.send, 0, 0);
    EXPECT_EQ(overflowed, std::vector<WorkQueue*>{&vi_.send});
    EXPECT_EQ(cq_.ring.size(), 1u);
    EXPECT_NE(descriptors_[1].CS.Status & VIP_STATUS_DONE, 0u);
}

TEST_F(Queues, TheFirstReasonOfABreakWins) {
    BreakReason first, second;
    first.code = VIP_ERROR_RECVQ_EMPTY;
    second.code = VIP_ERROR_CATASTROPHIC;
    EXPECT_FALSE(vi_.is_marked_broken());
    EXPECT_TRUE(vi_.mark_broken(first));
    EXPECT_FALSE(vi_.mark_broken(second));
    EXPECT_TRUE(vi_.is_marked_broken());
    EXPECT_EQ(vi_.reason.code, VIP_ERROR_RECVQ_EMPTY);
}

// ------------------------------------------------------------------------------------------------ completion
// ring

TEST(CompletionRing, HoldsExactlyWhatWasAskedFor) {  // spec/compat Q3
    WorkQueue q;
    for (const uint32_t entries : {1u, 2u, 3u, 5u, 64u, 100u}) {
        CompletionRing ring;
        ASSERT_TRUE(ring.allocate(entries));
        EXPECT_EQ(ring.capacity(), entries);
        for (int round = 0; round < 3; ++round) {
            for (uint32_t i = 0; i < entries; ++i) EXPECT_TRUE(ring.push(&q));
            EXPECT_FALSE(ring.push(&q));
            for (uint32_t i = 0; i < entries; ++i) EXPECT_EQ(ring.pop(), &q);
            EXPECT_EQ(ring.pop(), nullptr);
            EXPECT_TRUE(ring.empty());
        }
    }
}

TEST(CompletionRing, WithoutRoomTakesNothing) {
    CompletionRing ring;
    WorkQueue q;
    EXPECT_FALSE(ring.push(&q));
    EXPECT_EQ(ring.pop(), nullptr);
    EXPECT_FALSE(ring.allocate(0));
    EXPECT_FALSE(ring.allocate(UINT32_MAX));
}

TEST(CompletionRing, KeepsEntriesInOrderWhenResized) {
    WorkQueue q[6];
    CompletionRing ring;
    ASSERT_TRUE(ring.allocate(4));
    ring.push(&q[5]);
    ring.push(&q[5]);
    ring.pop();
    ring.pop();  // the next entries go around the end
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(ring.push(&q[i]));
    EXPECT_FALSE(ring.resize(3)) << "below the number of entries";
    EXPECT_FALSE(ring.resize(0));
    EXPECT_EQ(ring.capacity(), 4u);
    ASSERT_TRUE(ring.resize(5));
    ASSERT_TRUE(ring.push(&q[4]));
    EXPECT_FALSE(ring.push(&q[5]));
    for (int i = 0; i < 5; ++i) EXPECT_EQ(ring.pop(), &q[i]);
    ASSERT_TRUE(ring.resize(1));
    EXPECT_TRUE(ring.push(&q[0]));
    EXPECT_FALSE(ring.push(&q[1]));
}

TEST(CompletionRing, ForgetsTheEntriesOfADestroyedVi) {
    WorkQueue a, b;
    CompletionRing ring;
    ASSERT_TRUE(ring.allocate(6));
    for (WorkQueue* q : {&a, &b, &a, &a, &b, &a}) ring.push(q);
    ring.purge(&a);
    EXPECT_EQ(ring.size(), 2u);
    EXPECT_EQ(ring.pop(), &b);
    EXPECT_EQ(ring.pop(), &b);
    EXPECT_EQ(ring.pop(), nullptr);
    ring.purge(&a);
    EXPECT_TRUE(ring.empty());
}

TEST(CompletionRing, IsEmptyWhenReleasedAndWhenMadeAgain) {
    WorkQueue q;
    CompletionRing ring;
    ASSERT_TRUE(ring.allocate(2));
    ring.push(&q);
    ring.release();
    EXPECT_EQ(ring.capacity(), 0u);
    EXPECT_EQ(ring.pop(), nullptr);
    ASSERT_TRUE(ring.allocate(2));
    EXPECT_EQ(ring.pop(), nullptr);
}

// Producers stand for work queues, consumers for threads in VipCQWait, one more thread resizes all the time
// (spec/compat Q3, NT): nothing is lost, nothing twice.
TEST(CompletionRingStress, ManyProducersConsumersAndAResizer) {
    constexpr int kProducers = 3, kEach = 30'000;
    CompletionRing ring;
    ASSERT_TRUE(ring.allocate(16));
    WorkQueue queues[kProducers];
    std::atomic<int> taken[kProducers] = {};
    std::atomic<int> left{kProducers * kEach};
    std::atomic<bool> stop{false};

    std::vector<std::thread> threads;
    for (auto& queue : queues) {
        threads.emplace_back([&] {
            for (int i = 0; i < kEach; ++i) {
                while (!ring.push(&queue)) std::this_thread::yield();
            }
        });
    }
    for (int i = 0; i < 2; ++i) {
        threads.emplace_back([&] {
            while (left.load() > 0) {
                WorkQueue* q = ring.pop();
                if (q == nullptr) {
                    std::this_thread::yield();
                    continue;
                }
                ++taken[q - queues];
                --left;
            }
        });
    }
    std::thread resizer([&] {
        for (uint32_t size = 1; !stop; size = size % 64 + 1) {
            ring.resize(size);
            std::this_thread::yield();
        }
    });
    for (auto& t : threads) t.join();
    stop = true;
    resizer.join();
    for (auto& count : taken) EXPECT_EQ(count, kEach);
    EXPECT_TRUE(ring.empty());
}

// One thread completes, another dequeues, as a provider's thread and the application do.
TEST(WorkQueueStress, CompletionsCrossThreadsWhole) {
    ViCore vi;
    vi.events = &kRecorder;
    WorkQueue& q = vi.recv;
    ASSERT_TRUE(q.allocate(64));
    q.vi = &vi;
    q.is_receive = true;
    std::vector<VIP_DESCRIPTOR> descriptors(64);
    std::memset(static_cast<void*>(descriptors.data()), 0, descriptors.size() * sizeof(VIP_DESCRIPTOR));
    constexpr uint32_t kMessages = 100'000;
    std::thread provider([&] {
        for (uint32_t i = 0; i < kMessages;) {
            q.lock.lock();
            const bool found = q.has_untaken();
            if (found) {
                VIP_DESCRIPTOR* d = q.next_untaken();
                ++q.taken;
                d->CS.ImmediateData = i;
                complete_head(q, VIP_STATUS_OP_RECEIVE | VIP_STATUS_IMMEDIATE, i);
                ++i;
            }
            q.lock.unlock();
            if (!found) std::this_thread::yield();
        }
    });
    uint32_t posted = 0, wrong = 0;
    for (uint32_t i = 0; i < kMessages;) {
        q.lock.lock();
        while (posted < kMessages && !q.full()) q.push(&descriptors[posted++ % 64]);
        const bool found = q.head_complete();
        if (found) {
            bool in_error = false;
            const VIP_DESCRIPTOR* d = q.dequeue(&in_error);
            if (d->CS.Length != i || d->CS.ImmediateData != i || in_error) ++wrong;
            ++i;
        }
        q.lock.unlock();
        if (!found) std::this_thread::yield();
    }
    provider.join();
    EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace viaduct
