// SPDX-License-Identifier: BSD-2-Clause
// Waiting for and being notified of the completions of one queue: spec/calls 4.6, spec/completion 10.
#include <signal.h>
#include <pthread.h>

#include <thread>

#include "fixture.hpp"

namespace viaduct::conformance {
namespace {

struct Handed {
    static void handler(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_DESCRIPTOR* d) {
        auto* self = static_cast<Handed*>(context);
        const std::lock_guard lock(self->mutex);
        self->nic = nic;
        self->vi = vi;
        self->thread = std::this_thread::get_id();
        self->descriptors.push_back(d);
    }
    std::size_t size() const {
        const std::lock_guard lock(mutex);
        return descriptors.size();
    }
    VIP_DESCRIPTOR* at(std::size_t index) const {
        const std::lock_guard lock(mutex);
        return descriptors.at(index);
    }
    mutable std::mutex mutex;
    VIP_NIC_HANDLE nic = nullptr;
    VIP_VI_HANDLE vi = nullptr;
    std::thread::id thread;
    std::vector<VIP_DESCRIPTOR*> descriptors;
};

// -------------------------------------------------------------------------------------------------------- wait

TEST(Wait, TimesOutNoEarlierThanAskedInEveryStateThatKeepsReceives) {
    for (const VS state : {VS::kIdle, VS::kPending, VS::kConnected}) {
        StatedVi stated(state);
        stated.end().receive(16);
        for (const VIP_ULONG timeout : {0ul, 1ul, 40ul}) {
            VIP_DESCRIPTOR marker{};
            VIP_DESCRIPTOR* got = &marker;
            const Stopwatch start;
            CONFORM_RESULT("VipRecvWait", VIP_TIMEOUT, state, VipRecvWait(stated.vi(), timeout, &got));
            EXPECT_GE(since(start), Millis{timeout});
            EXPECT_TRUE(in_time(start, Millis{timeout + 2000}));
            EXPECT_EQ(got, nullptr);
        }
    }
}

TEST(Wait, ASecondWaiterOnOneQueueIsRefused) {
    for (const VS state : {VS::kIdle, VS::kPending, VS::kConnected}) {
        StatedVi stated(state);
        stated.end().receive(16);
        // Either may come first: the other is refused then, and the one for ever goes on until it is in.
        std::atomic<bool> over{false};
        auto first = in_background([&] {
            VIP_DESCRIPTOR* d = nullptr;
            VIP_RETURN result = VIP_ERROR_RESOURCE;
            while (result == VIP_ERROR_RESOURCE && !over) {
                result = VipRecvWait(stated.vi(), VIP_INFINITE, &d);
            }
            return result;
        });
        VIP_DESCRIPTOR* d = nullptr;
        VIP_RETURN second = VIP_TIMEOUT;
        eventually([&] {
            second = VipRecvWait(stated.vi(), 1, &d);
            return second != VIP_TIMEOUT;
        });
        CONFORM_RESULT("VipRecvWait", VIP_ERROR_RESOURCE, state, second);
        EXPECT_FALSE(ready(first, kQuietTime));
        CONFORM_RESULT("VipRecvWait", VIP_ERROR_RESOURCE, state, VipRecvWait(stated.vi(), kLongWait, &d));
        EXPECT_EQ(VipRecvDone(stated.vi(), &d), VIP_NOT_DONE) << "Done works beside a waiter";
        VipDisconnect(stated.vi());
        EXPECT_TRUE(ready(first));
        over = true;
        first.get();
    }
}

TEST(Wait, WakesUpForAMessageWithEverySpellingOfForEver) {
    Pair pair;
    for (const VIP_ULONG timeout : {VIP_ULONG{kLongWait}, VIP_ULONG{VIP_INFINITE}, ~VIP_ULONG{0}}) {
        VIP_DESCRIPTOR* posted = pair.server.receive(16);
        VIP_DESCRIPTOR* got = nullptr;
        auto waiter = in_background([&] { return VipRecvWait(pair.server.vi, timeout, &got); });
        EXPECT_FALSE(ready(waiter, kQuietTime));
        deliver(pair);
        ASSERT_TRUE(ready(waiter));
        CONFORM_RESULT("VipRecvWait", VIP_SUCCESS, VS::kConnected, waiter.get());
        EXPECT_EQ(got, posted);
    }
}

TEST(Wait, ReturnsTheErrorOfABadSend) {
    Pair pair;
    VIP_DESCRIPTOR* d = pair.client.message(pair.client.buffer(8), 8);
    d->CS.Length = 5;
    require(pair.client.post_send(d), "VipPostSend");
    VIP_DESCRIPTOR* got = nullptr;
    CONFORM(VIP_DESCRIPTOR_ERROR, kConnected, VipSendWait(pair.client.vi, kLongWait, &got));
    EXPECT_EQ(got, d);
    EXPECT_TRUE(d->CS.Status & VIP_STATUS_LENGTH_ERROR);
}

TEST(Wait, ReturnsTheErrorOfABadReceive) {
    EndOptions chosen;
    chosen.level = VIP_SERVICE_UNRELIABLE;
    Pair pair(chosen);
    VIP_DESCRIPTOR* d = pair.server.receive(4);
    deliver(pair);
    VIP_DESCRIPTOR* got = nullptr;
    CONFORM(VIP_DESCRIPTOR_ERROR, kConnected, VipRecvWait(pair.server.vi, kLongWait, &got));
    EXPECT_EQ(got, d);
}

TEST(Wait, GoesOnAfterASignalAndKeepsItsDeadline) {
    struct sigaction ignore {};
    struct sigaction before {};
    ignore.sa_handler = [](int) {};
    sigaction(SIGUSR1, &ignore, &before);
    Pair pair;
    pair.server.receive(16);
    std::atomic<pthread_t> thread{};
    std::atomic<bool> known{false};
    const Stopwatch start;
    auto waiter = in_background([&] {
        thread = pthread_self();
        known = true;
        VIP_DESCRIPTOR* d = nullptr;
        return VipRecvWait(pair.server.vi, 120, &d);
    });
    ASSERT_TRUE(eventually([&] { return known.load(); }));
    for (int i = 0; i < 5; ++i) {
        if (!ready(waiter, Millis{10})) {
            pthread_kill(thread, SIGUSR1);
        }
    }
    EXPECT_EQ(waiter.get(), VIP_TIMEOUT);
    EXPECT_GE(since(start), Millis{120});
    EXPECT_TRUE(in_time(start, Millis{2000}));
    sigaction(SIGUSR1, &before, nullptr);
}

TEST(Wait, AThousandWakeUpsAreNeverLost) {
    Pair pair;
    constexpr int kRounds = 1000;
    const auto turn = [](End& end, VIP_DESCRIPTOR* receive, VIP_DESCRIPTOR* send, bool first, char* in, char* out) {
        for (int i = 0; i < kRounds; ++i) {
            VIP_DESCRIPTOR* d = nullptr;
            if (first) {
                fill(send, 0, {end.piece(out, 8)});
                require(end.post_send(send), "VipPostSend");
                require(VipSendWait(end.vi, kLongWait, &d), "VipSendWait");
            }
            require(VipRecvWait(end.vi, kLongWait, &d), "VipRecvWait");
            fill(receive, 0, {end.piece(in, 8)});
            require(end.post_recv(receive), "VipPostRecv");
            if (!first) {
                fill(send, 0, {end.piece(out, 8)});
                require(end.post_send(send), "VipPostSend");
                require(VipSendWait(end.vi, kLongWait, &d), "VipSendWait");
            }
        }
        return kRounds;
    };
    struct Side {
        VIP_DESCRIPTOR* receive;
        VIP_DESCRIPTOR* send;
        char* in;
        char* out;
    };
    const auto prepare = [](End& end) {
        Side side{end.descriptor(), end.descriptor(), end.buffer(8), end.buffer(8)};
        fill(side.receive, 0, {end.piece(side.in, 8)});
        require(end.post_recv(side.receive), "VipPostRecv");
        return side;
    };
    const Side there = prepare(pair.server);
    const Side here = prepare(pair.client);
    auto other = in_background(
        [&] { return turn(pair.server, there.receive, there.send, false, there.in, there.out); });
    EXPECT_EQ(turn(pair.client, here.receive, here.send, true, here.in, here.out), kRounds);
    EXPECT_EQ(other.get(), kRounds);
}

constexpr Millis kUnderWay{500};
constexpr char kDelayed[] = "seed=1,delay_us=500000";

// False: the machine has kept the looks waiting until the send was nearly complete, and they say nothing.
bool look_at_send_under_way(Pair& pair) {
    pair.server.receive(16);
    pair.client.send(pair.client.buffer(16), 16);
    const auto start = Clock::now();
    const auto in_time = [start] { return since(start) < kUnderWay - kQuietTime; };
    VIP_DESCRIPTOR* got = nullptr;
    const VIP_RETURN done = VipSendDone(pair.client.vi, &got);
    const bool none = got == nullptr;
    const VIP_RETURN waited = VipSendWait(pair.client.vi, 20, &got);
    const bool long_enough = since(start) >= Millis{20};
    auto waiter = in_background([&] {
        VIP_DESCRIPTOR* taken = nullptr;
        return VipSendWait(pair.client.vi, kLongWait, &taken);
    });
    // A busy machine starts it late; but the send does not wait for that.
    const bool early = waiter.wait_for(Millis{200}) == std::future_status::ready;
    const VIP_RETURN second = early ? VIP_NOT_DONE : VipSendWait(pair.client.vi, 1000, &got);
    if (!in_time()) {
        waiter.wait();
        reap_recv(pair.server.vi);
        return false;
    }
    CONFORM_RESULT("VipSendDone", VIP_NOT_DONE, VS::kConnected, done);
    EXPECT_TRUE(none);
    CONFORM_RESULT("VipSendWait", VIP_TIMEOUT, VS::kConnected, waited);
    EXPECT_TRUE(long_enough);
    EXPECT_FALSE(early);
    CONFORM_RESULT("VipSendWait", VIP_ERROR_RESOURCE, VS::kConnected, second);
    CONFORM_RESULT("VipSendWait", VIP_SUCCESS, VS::kConnected, waiter.get());
    EXPECT_GE(since(start), kUnderWay - Millis{10});
    EXPECT_EQ(reap_recv(pair.server.vi).code, VIP_SUCCESS);
    return true;
}

// A send that is not complete yet can be met only where the wire takes its time.
TEST(SendWait, OfASendUnderWayTimesOutAndAdmitsOneWaiter) {
    const std::string reason = "no send of this NIC is ever seen under way";
    EndOptions chosen;
    chosen.level = VIP_SERVICE_RELIABLE_RECEPTION;
    const FaultControl faults;
    const bool reception = (nic_attributes().ReliabilityLevelSupport & chosen.level) != 0;
    if (!reception) {
        chosen.level = VIP_SERVICE_RELIABLE_DELIVERY;
    }
    Pair pair(chosen);
    // Longer than a machine that is busy delays the looks here, shorter than a peer may be silent (650 ms where no
    // process reports its end).
    if (!reception || !faults.set(pair.client.vi, kDelayed)) {
        cannot_show("VipSendDone", VIP_NOT_DONE, VS::kConnected, reason);
        cannot_show("VipSendWait", VIP_TIMEOUT, VS::kConnected, reason);
        GTEST_SKIP() << reason << " (no fault plan with a delay)";
    }
    bool seen = look_at_send_under_way(pair);
    const auto began = Clock::now();
    for (int turn = 1; !seen && (turn < 10 || since(began) < Millis{60000}); ++turn) {
        Pair again(chosen);
        ASSERT_TRUE(faults.set(again.client.vi, kDelayed));
        seen = look_at_send_under_way(again);
    }
    EXPECT_TRUE(seen) << "for a minute the machine took longer for three calls than the send did";
}

// ------------------------------------------------------------------------------------------------------ notify

using NotifyStates = InEachState;

TEST_P(NotifyStates, HandsOutWhatCompletesOnBothQueues) {
    StatedVi stated(GetParam());
    Handed received;
    Handed sent;
    CONFORM_RESULT("VipRecvNotify", VIP_SUCCESS, GetParam(),
                   VipRecvNotify(stated.vi(), &received, &Handed::handler));
    CONFORM_RESULT("VipSendNotify", VIP_SUCCESS, GetParam(), VipSendNotify(stated.vi(), &sent, &Handed::handler));
    EXPECT_EQ(received.size() + sent.size(), 0u) << "nothing is there yet";
    VIP_DESCRIPTOR* receive = stated.end().receive(16);
    VIP_DESCRIPTOR* send = stated.end().message(stated.end().buffer(8), 8);
    send->CS.Length = GetParam() == VS::kConnected ? 9 : 8;  // fails in Connected, is flushed elsewhere
    require(stated.end().post_send(send), "VipPostSend");
    ASSERT_TRUE(eventually([&] { return sent.size() == 1; }));
    EXPECT_EQ(sent.at(0), send);
    VipDisconnect(stated.vi());
    ASSERT_TRUE(eventually([&] { return received.size() == 1; })) << "a flushed receive is a completion";
    EXPECT_EQ(received.at(0), receive);
    EXPECT_EQ(received.vi, stated.vi());
    EXPECT_EQ(received.nic, stated.end().nic);
    EXPECT_NE(received.thread, std::this_thread::get_id());
    VIP_DESCRIPTOR* d = receive;
    EXPECT_EQ(VipRecvDone(stated.vi(), &d), VIP_DESCRIPTOR_ERROR);
    EXPECT_EQ(d, nullptr) << "a descriptor is handed out exactly once";
}

INSTANTIATE_TEST_SUITE_P(EachState, NotifyStates, VIADUCT_ALL_STATES, state_test_name);

TEST(Notify, IsCalledForACompletionThatIsThereAlready) {
    Pair pair;
    VIP_DESCRIPTOR* posted = pair.server.receive(16);
    require(VipDisconnect(pair.server.vi), "VipDisconnect");
    Handed handed;
    CONFORM(VIP_SUCCESS, kIdle, VipRecvNotify(pair.server.vi, &handed, &Handed::handler));
    ASSERT_TRUE(eventually([&] { return handed.size() == 1; }));
    EXPECT_EQ(handed.at(0), posted);
}

TEST(Notify, IsOneShotAndQueuesUpInOrder) {
    Pair pair;
    Handed handed[3];
    VIP_DESCRIPTOR* posted[4];
    for (VIP_DESCRIPTOR*& d : posted) {
        d = pair.server.receive(16);
    }
    for (Handed& each : handed) {
        CONFORM(VIP_SUCCESS, kConnected, VipRecvNotify(pair.server.vi, &each, &Handed::handler));
    }
    for (std::size_t i = 0; i < 3; ++i) {
        deliver(pair);
        ASSERT_TRUE(eventually([&] { return handed[i].size() == 1; })) << "notify " << i;
        EXPECT_EQ(handed[i].at(0), posted[i]);
    }
    deliver(pair);
    EXPECT_EQ(reap_recv(pair.server.vi).descriptor, posted[3]) << "no notify is left for the fourth";
    for (const Handed& each : handed) {
        EXPECT_EQ(each.size(), 1u);
    }
}

TEST(Notify, CanBeArmedOnAnEmptyQueueAndBesideDone) {
    Pair pair;
    Handed handed;
    CONFORM(VIP_SUCCESS, kConnected, VipRecvNotify(pair.server.vi, &handed, &Handed::handler));
    VIP_DESCRIPTOR* d = nullptr;
    EXPECT_EQ(VipRecvDone(pair.server.vi, &d), VIP_DESCRIPTOR_ERROR);
    VIP_DESCRIPTOR* posted = pair.server.receive(16);
    EXPECT_EQ(VipRecvDone(pair.server.vi, &d), VIP_NOT_DONE);
    deliver(pair);
    ASSERT_TRUE(eventually([&] { return handed.size() == 1; }));
    EXPECT_EQ(handed.at(0), posted);
}

TEST(Notify, OfSendsHandsThemOutInOrder) {
    Pair pair;
    constexpr std::size_t kSends = 5;
    Handed handed;
    for (std::size_t i = 0; i < kSends; ++i) {
        pair.server.receive(16);
        CONFORM(VIP_SUCCESS, kConnected, VipSendNotify(pair.client.vi, &handed, &Handed::handler));
    }
    std::vector<VIP_DESCRIPTOR*> sends;
    for (std::size_t i = 0; i < kSends; ++i) {
        sends.push_back(pair.client.send(pair.client.buffer(8), 8));
    }
    ASSERT_TRUE(eventually([&] { return handed.size() == kSends; }));
    for (std::size_t i = 0; i < kSends; ++i) {
        EXPECT_EQ(handed.at(i), sends[i]);
    }
}

TEST(Notify, IsCancelledSilentlyByDestroy) {
    End end;
    const VIP_VI_HANDLE vi = end.create_vi();
    Handed handed;
    require(VipRecvNotify(vi, &handed, &Handed::handler), "VipRecvNotify");
    require(VipSendNotify(vi, &handed, &Handed::handler), "VipSendNotify");
    CONFORM(VIP_SUCCESS, kIdle, VipDestroyVi(vi));
    EXPECT_TRUE(never([&] { return handed.size() != 0; }));
}

// Programs free the handler's context when the VI is destroyed.
TEST(Notify, DestroyWaitsForAHandlerThatRuns) {
    struct Slow {
        static void handler(VIP_PVOID context, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_DESCRIPTOR*) {
            auto* self = static_cast<Slow*>(context);
            self->begun = true;
            while (!self->destroying) std::this_thread::yield();
            std::this_thread::sleep_for(Millis{50});  // sleeps: the handler works
            self->ended = true;
        }
        std::atomic<bool> begun{false}, destroying{false}, ended{false};
    };
    End end;
    end.receive(16);
    Slow slow;
    require(VipRecvNotify(end.vi, &slow, &Slow::handler), "VipRecvNotify");
    require(VipDisconnect(end.vi), "VipDisconnect");
    ASSERT_TRUE(eventually([&] { return slow.begun.load(); }));
    const auto start = Clock::now();
    slow.destroying = true;
    CONFORM(VIP_SUCCESS, kIdle, VipDestroyVi(end.vi));
    const bool waited_a_second = since(start) >= kOneSecond;  // longer the library does not wait for a handler
    EXPECT_TRUE(slow.ended || waited_a_second);
    end.vi = nullptr;
    EXPECT_TRUE(eventually([&] { return slow.ended.load(); })) << "its context is ours";
}

TEST(Notify, MayArmItselfAgainInItsHandler) {
    struct Server {
        static void handler(VIP_PVOID context, VIP_NIC_HANDLE, VIP_VI_HANDLE vi, VIP_DESCRIPTOR* d) {
            auto* self = static_cast<Server*>(context);
            if ((d->CS.Status & VIP_STATUS_ERROR_MASK) != 0) {
                return;
            }
            d->CS.Status = 0;
            d->CS.Length = 16;
            VipPostRecv(vi, d, self->region);
            VipRecvNotify(vi, self, &handler);
            ++self->served;
        }
        VIP_MEM_HANDLE region;
        std::atomic<int> served{0};
    };
    Pair pair;
    Server server{pair.server.region, {}};
    pair.server.receive(16);
    require(VipRecvNotify(pair.server.vi, &server, &Server::handler), "VipRecvNotify");
    for (int i = 1; i <= 50; ++i) {
        deliver(pair);
        ASSERT_TRUE(eventually([&] { return server.served == i; })) << i;
    }
}

}  // namespace
}  // namespace viaduct::conformance
