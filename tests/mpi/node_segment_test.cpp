// SPDX-License-Identifier: BSD-2-Clause
// The shared memory of collective calls, with threads as members: each has its own NodeSegment of the same memory.
#include "mpi-adi/engine/coll/node_segment.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace viaduct::mpi::coll {
namespace {

struct Free {
    void operator()(std::byte* memory) const { ::operator delete[](memory, std::align_val_t(128)); }
};

std::unique_ptr<std::byte[], Free> memory_for(int members) {
    const size_t bytes = NodeSegment::bytes_for(members);
    auto* memory = static_cast<std::byte*>(::operator new[](bytes, std::align_val_t(128)));
    std::memset(memory, 0, bytes);
    return std::unique_ptr<std::byte[], Free>(memory);
}

void among(int members, const std::function<void(NodeSegment&)>& body) {
    const auto memory = memory_for(members);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < members; ++rank)
        threads.emplace_back([&, rank] {
            NodeSegment segment(memory.get(), members, rank);
            body(segment);
        });
    for (std::thread& thread : threads) thread.join();
}

void wait(NodeSegment& segment, const Wanted& wanted) {
    while (!segment.holds(wanted)) ::sched_yield();
}

// Data that is not protected by anything but the barrier: the thread sanitizer sees it when it does not hold.
TEST(NodeSegment, BarrierOrdersWhatIsBeforeAndAfter) {
    constexpr int kMembers = 5, kRounds = 60;
    std::vector<int> values(kMembers, -1);
    among(kMembers, [&](NodeSegment& segment) {
        for (int round = 0; round < kRounds; ++round) {
            values[size_t(segment.own())] = round;
            for (int half = 0; half < 2; ++half) {
                const uint64_t number = segment.next();
                EXPECT_FALSE(segment.arrive(number, 0));
                wait(segment, Wanted::all(number));
                if (half == 1) continue;
                for (const int value : values) EXPECT_EQ(value, round);
            }
        }
    });
}

// The writer runs ahead, by as many calls as there are buffers, and none is written before all have read it.
TEST(NodeSegment, BuffersAreWrittenAgainWhenAllHaveReadThem) {
    constexpr int kMembers = 4, kRounds = 180;
    for (const bool large : {false, true}) {
        among(kMembers, [&](NodeSegment& segment) {
            for (int round = 0; round < kRounds; ++round) {
                const int root = round / 60 % kMembers;  // one after the other, each with more calls than buffers
                const uint64_t number = segment.next();
                const NodeSegment::Buffer buffer = large ? segment.large_buffer(number) : segment.small(number);
                std::byte* const at = NodeSegment::data(buffer.of(root));
                if (segment.own() == root) {
                    while (!segment.is_free(buffer)) ::sched_yield();
                    std::memset(at, round % 256, 100);
                    (void)segment.arrive(number, 0);
                    continue;
                }
                (void)segment.arrive(number, 0);
                wait(segment, Wanted::of(root, number));
                for (int i = 0; i < 100; ++i) EXPECT_EQ(int(at[i]), round % 256);
            }
        });
    }
}

TEST(NodeSegment, PiecesAreDoneOnceAndSeenByAll) {
    constexpr int kMembers = 4, kPieces = 7, kRounds = 30;
    std::vector<int> done(kPieces, 0);
    among(kMembers, [&](NodeSegment& segment) {
        for (int round = 0; round < kRounds; ++round) {
            const uint64_t number = segment.next();
            (void)segment.arrive(number, 0);
            wait(segment, Wanted::all(number));
            EXPECT_FALSE(segment.work_on(number, kPieces, [&](uint32_t piece) { ++done[piece]; }));
            wait(segment, Wanted::reduced(number));
            for (const int times : done) EXPECT_EQ(times, round + 1);
            const uint64_t after = segment.next();
            (void)segment.arrive(after, 0);
            wait(segment, Wanted::all(after));
        }
    });
}

// A sleeper is rung for once, by a partner, and only when it can go on.
TEST(NodeSegment, SleepersAreWokenWhenTheyCanGoOn) {
    constexpr int kMembers = 4;
    const auto memory = memory_for(kMembers);
    std::vector<std::unique_ptr<NodeSegment>> all;
    for (int rank = 0; rank < kMembers; ++rank)
        all.push_back(std::make_unique<NodeSegment>(memory.get(), kMembers, rank));
    const auto rung_by = [&](int rank) {
        std::vector<int> rung;
        all[size_t(rank)]->wake([&](int other) { rung.push_back(other); });
        return rung;
    };
    uint64_t number = 0;
    for (auto& one : all) number = one->next();
    EXPECT_FALSE(all[0]->arrive(number, 0));
    all[0]->announce(Wanted::all(number), false);
    EXPECT_TRUE(all[1]->arrive(number, 0));
    EXPECT_TRUE(rung_by(1).empty());
    all[1]->announce(Wanted::of(0, number), false);
    EXPECT_TRUE(all[2]->arrive(number, 0));
    EXPECT_EQ(rung_by(2), std::vector<int>{1});
    EXPECT_TRUE(all[3]->arrive(number, 0));
    EXPECT_EQ(rung_by(3), std::vector<int>{0});
    EXPECT_TRUE(rung_by(1).empty());
    all[0]->announce(Wanted::all(number), true);
    EXPECT_EQ(rung_by(1), std::vector<int>{0});
    EXPECT_TRUE(all[1]->holds(Wanted::of(0, number)));
    all[0]->withdraw();
    EXPECT_TRUE(all[1]->some_sleep());
    all[1]->withdraw();
    EXPECT_FALSE(all[1]->some_sleep());
}

TEST(NodeSegment, MissingMembersAreKnownByTheirPlace) {
    constexpr int kMembers = 3;
    const auto memory = memory_for(kMembers);
    NodeSegment first(memory.get(), kMembers, 0), second(memory.get(), kMembers, 1), third(memory.get(), kMembers, 2);
    (void)second.arrive(second.next(), 7);
    (void)third.arrive(third.next(), 8);
    (void)first.arrive(first.next(), 7);
    const uint64_t number = first.next();
    (void)first.arrive(number, 7);
    EXPECT_TRUE(first.missing_at(Wanted::all(number), 7));
    EXPECT_TRUE(first.missing_at(Wanted::all(number), 8));
    EXPECT_FALSE(first.missing_at(Wanted::all(number), 9));
    EXPECT_FALSE(first.missing_at(Wanted::of(2, number), 7));
    second.tell_place(9);
    EXPECT_TRUE(first.missing_at(Wanted::all(number), 9));
    EXPECT_TRUE(first.awaits(Wanted::all(number), 1));
    (void)second.arrive(second.next(), 9);
    EXPECT_FALSE(first.missing_at(Wanted::all(number), 9));
    EXPECT_FALSE(first.awaits(Wanted::all(number), 1));
}

// A member that has looked for nothing during any number of calls, and buffers and reductions that were not used for as
// long: what is far behind is not taken for what is to come. 2^31 calls are less than an hour of barriers.
TEST(NodeSegment, NumbersStayInOrderForAsLongAsACommunicatorLives) {
    for (const uint64_t far : {uint64_t{1} << 31, (uint64_t{1} << 31) + 5, uint64_t{1} << 32, uint64_t{1} << 40}) {
        const auto memory = memory_for(2);
        NodeSegment first(memory.get(), 2, 0), second(memory.get(), 2, 1);
        const NodeSegment::Buffer before = first.large_buffer(1);
        EXPECT_TRUE(first.is_free(before));
        (void)first.arrive(far, 0);
        EXPECT_FALSE(first.holds(Wanted::all(far))) << far;
        EXPECT_FALSE(first.holds(Wanted::of(1, far))) << far;
        EXPECT_FALSE(first.holds(Wanted::reduced(far))) << far;
        (void)second.arrive(far, 9);
        EXPECT_TRUE(first.holds(Wanted::all(far))) << far;
        EXPECT_TRUE(first.holds(Wanted::of(1, far))) << far;
        (void)first.large_buffer(far);
        EXPECT_TRUE(first.is_free(first.large_buffer(far + 1))) << far;  // that of call 1 again
    }
}

// What another process writes cannot lead anywhere.
TEST(NodeSegment, WrongWordsOnlyDelay) {
    constexpr int kMembers = 3;
    const auto memory = memory_for(kMembers);
    NodeSegment segment(memory.get(), kMembers, 0);
    std::memset(memory.get(), 0xee, NodeSegment::bytes_for(kMembers));
    const uint64_t number = segment.next();
    (void)segment.arrive(number, 1);
    segment.wake([&](int rank) { EXPECT_LT(rank, segment.members()); });
    uint32_t most = 0;
    (void)segment.work_on(number, 5, [&](uint32_t piece) { most = std::max(most, piece); });
    EXPECT_LT(most, 5u);
}

}  // namespace
}  // namespace viaduct::mpi::coll
