// SPDX-License-Identifier: BSD-2-Clause
// VipCQNotify: handlers for entries of a completion queue (spec/calls 4.7, spec/compat 11).
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "cq_testing.hpp"

namespace viaduct::conformance {
namespace {

struct Notices {
    static void handler(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_BOOLEAN recv) {
        auto* self = static_cast<Notices*>(context);
        const std::lock_guard lock(self->mutex);
        self->nic = nic;
        self->vis.push_back(vi);
        self->recv.push_back(recv);
        self->thread = std::this_thread::get_id();
    }
    std::size_t size() const {
        const std::lock_guard lock(mutex);
        return vis.size();
    }
    mutable std::mutex mutex;
    VIP_NIC_HANDLE nic = nullptr;
    std::vector<VIP_VI_HANDLE> vis;
    std::vector<VIP_BOOLEAN> recv;
    std::thread::id thread;
};

TEST(CqNotify, IsCalledOnceForAnEntryThatComesLater) {
    EndOptions chosen;
    chosen.recv_cq = 8;
    Pair pair(EndOptions{}, chosen);
    Notices notices;
    pair.server.receive(16);
    pair.server.receive(16);
    CONFORM(VIP_SUCCESS, kNone, VipCQNotify(pair.server.recv_cq, &notices, &Notices::handler));
    EXPECT_TRUE(never([&] { return notices.size() != 0; }));
    deliver(pair);
    ASSERT_TRUE(eventually([&] { return notices.size() == 1; }));
    EXPECT_EQ(notices.nic, pair.server.nic);
    EXPECT_EQ(notices.vis[0], pair.server.vi);
    EXPECT_EQ(notices.recv[0], VIP_TRUE);
    EXPECT_NE(notices.thread, std::this_thread::get_id());
    EXPECT_EQ(reap_recv(pair.server.vi).code, VIP_SUCCESS) << "the entry was taken, the descriptor was not";
    EXPECT_EQ(take_entry(pair.server.recv_cq, kQuietTime).code, VIP_NOT_DONE);
    deliver(pair);
    EXPECT_TRUE(never([&] { return notices.size() != 1; })) << "one-shot";
    EXPECT_EQ(take_entry(pair.server.recv_cq).code, VIP_SUCCESS);
}

// Programs free the handler's context when the queue is destroyed. The handler takes the VI away itself, since
// destroying that would wait too.
TEST(CqNotify, DestroyWaitsForAHandlerThatRuns) {
    struct Slow {
        static void handler(VIP_PVOID context, VIP_NIC_HANDLE, VIP_VI_HANDLE vi, VIP_BOOLEAN) {
            auto* self = static_cast<Slow*>(context);
            EXPECT_EQ(VipDestroyVi(vi), VIP_SUCCESS);
            self->begun = true;
            while (!self->destroying) std::this_thread::yield();
            std::this_thread::sleep_for(Millis{50});  // sleeps: the handler works
            self->ended = true;
        }
        std::atomic<bool> begun{false}, destroying{false}, ended{false};
    };
    EndOptions chosen;
    chosen.recv_cq = 8;
    End end(chosen);
    flush_one(end, end.vi);
    end.vi = nullptr;
    Slow slow;
    require(VipCQNotify(end.recv_cq, &slow, &Slow::handler), "VipCQNotify");
    ASSERT_TRUE(eventually([&] { return slow.begun.load(); }));
    const auto start = Clock::now();
    slow.destroying = true;
    CONFORM(VIP_SUCCESS, kNone, VipDestroyCQ(end.recv_cq));
    const bool waited_a_second = since(start) >= kOneSecond;  // longer the library does not wait for a handler
    EXPECT_TRUE(slow.ended || waited_a_second);
    end.recv_cq = nullptr;
    EXPECT_TRUE(eventually([&] { return slow.ended.load(); })) << "its context is ours";
}

TEST(CqNotify, IsCalledAtOnceForAnEntryThatIsThere) {
    EndOptions chosen;
    chosen.recv_cq = 8;
    End end(chosen);
    Notices notices;
    flush_one(end, end.vi);
    CONFORM(VIP_SUCCESS, kNone, VipCQNotify(end.recv_cq, &notices, &Notices::handler));
    EXPECT_TRUE(eventually([&] { return notices.size() == 1; }));
    EXPECT_EQ(take_entry(end.recv_cq, kQuietTime).code, VIP_NOT_DONE);
}

TEST(CqNotify, SeveralAreServedInTheOrderOfTheEntries) {
    EndOptions chosen;
    chosen.recv_cq = 8;
    Pair pair(EndOptions{}, chosen);
    Notices notices[3];
    for (Notices& each : notices) {
        pair.server.receive(16);
        CONFORM(VIP_SUCCESS, kNone, VipCQNotify(pair.server.recv_cq, &each, &Notices::handler));
    }
    for (std::size_t i = 0; i < 3; ++i) {
        deliver(pair);
        ASSERT_TRUE(eventually([&] { return notices[i].size() == 1; })) << "notify " << i;
        for (std::size_t later = i + 1; later < 3; ++later) {
            EXPECT_EQ(notices[later].size(), 0u);
        }
    }
}

TEST(CqNotify, IsCancelledByDestroy) {
    End end;
    VIP_CQ_HANDLE cq = nullptr;
    Notices notices;
    require(VipCreateCQ(end.nic, 4, &cq), "VipCreateCQ");
    CONFORM(VIP_SUCCESS, kNone, VipCQNotify(cq, &notices, &Notices::handler));
    CONFORM(VIP_SUCCESS, kNone, VipDestroyCQ(cq));
    EXPECT_TRUE(never([&] { return notices.size() != 0; }));
}

TEST(CqNotify, IsServedByFlushedDescriptorsToo) {
    EndOptions chosen;
    chosen.recv_cq = 8;
    Pair pair(EndOptions{}, chosen);
    Notices notices;
    pair.server.receive(16);
    require(VipCQNotify(pair.server.recv_cq, &notices, &Notices::handler), "VipCQNotify");
    require(VipDisconnect(pair.client.vi), "VipDisconnect");
    EXPECT_TRUE(eventually([&] { return notices.size() == 1; }, kOneSecond));
    EXPECT_TRUE(reap_recv(pair.server.vi).errors() & VIP_STATUS_DESC_FLUSHED_ERROR);
}

TEST(CqNotify, MayArmItselfAgainInItsHandler) {
    struct Server {
        static void handler(VIP_PVOID context, VIP_NIC_HANDLE, VIP_VI_HANDLE vi, VIP_BOOLEAN) {
            auto* self = static_cast<Server*>(context);
            VIP_DESCRIPTOR* d = nullptr;
            if (VipRecvDone(vi, &d) == VIP_SUCCESS) {
                d->CS.Status = 0;
                d->CS.Length = 16;
                VipPostRecv(vi, d, self->region);
                VipCQNotify(self->cq, self, &handler);
                ++self->served;
            }
        }
        VIP_CQ_HANDLE cq;
        VIP_MEM_HANDLE region;
        std::atomic<int> served{0};
    };
    EndOptions chosen;
    chosen.recv_cq = 8;
    Pair pair(EndOptions{}, chosen);
    Server server{pair.server.recv_cq, pair.server.region, {}};
    pair.server.receive(16);
    require(VipCQNotify(server.cq, &server, &Server::handler), "VipCQNotify");
    for (int i = 1; i <= 50; ++i) {
        deliver(pair);
        ASSERT_TRUE(eventually([&] { return server.served == i; })) << i;
    }
}

}  // namespace
}  // namespace viaduct::conformance
