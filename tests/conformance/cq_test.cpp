// SPDX-License-Identifier: BSD-2-Clause
// Completion queues, and waits for their entries: spec/calls 4.7, spec/compat 11.
#include <algorithm>
#include <map>
#include <thread>

#include "cq_testing.hpp"

namespace viaduct::conformance {
namespace {

// ------------------------------------------------------------------------------------------- create and destroy

TEST(CqCreate, GivesAQueueThatIsEmptyAndCanBeDestroyed) {
    End end;
    for (const VIP_ULONG entries : {VIP_ULONG{1}, VIP_ULONG{2}, VIP_ULONG{1000}, end.limits.MaxCQEntries}) {
        VIP_CQ_HANDLE cq = nullptr;
        ASSERT_TRUE(CONFORM(VIP_SUCCESS, kNone, VipCreateCQ(end.nic, entries, &cq)));
        VIP_VI_HANDLE vi = &end;
        VIP_BOOLEAN recv = 77;
        CONFORM(VIP_NOT_DONE, kNone, VipCQDone(cq, &vi, &recv));
        CONFORM(VIP_SUCCESS, kNone, VipDestroyCQ(cq));
        CONFORM(VIP_INVALID_PARAMETER, kNone, VipCQDone(cq, &vi, &recv));
        CONFORM(VIP_INVALID_PARAMETER, kNone, VipDestroyCQ(cq));
    }
}

TEST(CqCreate, ImpossibleArgumentsAreRefused) {
    End end;
    VIP_CQ_HANDLE cq = nullptr;
    VIP_VI_HANDLE vi = nullptr;
    VIP_BOOLEAN recv = VIP_FALSE;
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipCreateCQ(end.nic, 4, nullptr));
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipCreateCQ(end.nic, 0, &cq));
    CONFORM(VIP_ERROR_RESOURCE, kNone, VipCreateCQ(end.nic, end.limits.MaxCQEntries + 1, &cq));
    require(VipCreateCQ(end.nic, 4, &cq), "VipCreateCQ");
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipCQDone(cq, nullptr, &recv));
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipCQDone(cq, &vi, nullptr));
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipCQWait(cq, 0, nullptr, &recv));
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipCQWait(cq, 0, &vi, nullptr));
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipCQNotify(cq, nullptr, nullptr));
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipResizeCQ(cq, 0));
    CONFORM(VIP_ERROR_RESOURCE, kNone, VipResizeCQ(cq, end.limits.MaxCQEntries + 1));
}

TEST(CqDestroy, IsRefusedWhileAViUsesTheQueue) {
    End end(with_one_cq(8));
    CONFORM(VIP_ERROR_RESOURCE, kNone, VipDestroyCQ(end.send_cq));
    require(VipDestroyVi(end.vi), "VipDestroyVi");
    end.vi = nullptr;
    CONFORM(VIP_SUCCESS, kNone, VipDestroyCQ(end.send_cq));
}

// ----------------------------------------------------------------------------------------------------- entries

TEST(CqEntries, OneQueueServesBothQueuesOfAViWithOneEntryPerCompletion) {
    Pair pair(with_one_cq(64));
    End& end = pair.client;
    std::vector<VIP_DESCRIPTOR*> receives;
    std::vector<VIP_DESCRIPTOR*> sends;
    for (int i = 0; i < 5; ++i) {
        receives.push_back(end.receive(16));
        pair.server.receive(16);
    }
    for (int i = 0; i < 5; ++i) {
        sends.push_back(end.send(end.buffer(16), 16));
        pair.server.send(pair.server.buffer(16), 16);
    }
    std::size_t sent = 0;
    std::size_t received = 0;
    for (int i = 0; i < 10; ++i) {
        const CqEntry entry = take_entry(end.send_cq);
        ASSERT_TRUE(CONFORM_RESULT("VipCQDone", VIP_SUCCESS, VS::kNone, entry.code));
        EXPECT_EQ(entry.vi, end.vi) << "never an unknown handle (spec/compat Q8)";
        VIP_DESCRIPTOR* d = nullptr;
        // The descriptor is there with its entry: one call, no loop.
        if (entry.recv) {
            ASSERT_EQ(VipRecvDone(entry.vi, &d), VIP_SUCCESS);
            EXPECT_EQ(d, receives.at(received++)) << "entries of one queue come in its order";
        } else {
            ASSERT_EQ(VipSendDone(entry.vi, &d), VIP_SUCCESS);
            EXPECT_EQ(d, sends.at(sent++));
        }
    }
    EXPECT_EQ(sent, 5u);
    EXPECT_EQ(received, 5u);
    EXPECT_EQ(take_entry(end.send_cq, kQuietTime).code, VIP_NOT_DONE) << "exactly one entry each";
}

TEST(CqEntries, TakingAnEntryLeavesTheDescriptorOnItsQueue) {
    EndOptions chosen;
    chosen.recv_cq = 8;
    Pair pair(EndOptions{}, chosen);
    VIP_DESCRIPTOR* posted = pair.server.receive(16);
    deliver(pair);
    EXPECT_EQ(take_entry(pair.server.recv_cq).code, VIP_SUCCESS);
    VIP_DESCRIPTOR* d = nullptr;
    EXPECT_EQ(VipRecvDone(pair.server.vi, &d), VIP_SUCCESS);
    EXPECT_EQ(d, posted);
}

TEST(CqEntries, DescriptorsTakenWithoutTheirEntryLeaveAHarmlessEntry) {
    EndOptions chosen;
    chosen.recv_cq = 8;
    Pair pair(EndOptions{}, chosen);
    pair.server.receive(16);
    deliver(pair);
    EXPECT_EQ(reap_recv(pair.server.vi).code, VIP_SUCCESS);
    const CqEntry stale = take_entry(pair.server.recv_cq);
    if (stale.code == VIP_SUCCESS) {
        EXPECT_EQ(stale.vi, pair.server.vi);
        VIP_DESCRIPTOR* d = nullptr;
        EXPECT_EQ(VipRecvDone(stale.vi, &d), VIP_DESCRIPTOR_ERROR) << "trap 16: be robust";
        EXPECT_EQ(d, nullptr);
    }
    pair.server.receive(16);
    deliver(pair);
    EXPECT_EQ(take_entry(pair.server.recv_cq).code, VIP_SUCCESS);
    EXPECT_EQ(reap_recv(pair.server.vi).code, VIP_SUCCESS);
}

TEST(CqEntries, AFailedSendHasItsEntryToo) {
    EndOptions chosen;
    chosen.send_cq = 8;
    chosen.level = VIP_SERVICE_UNRELIABLE;
    EndOptions plain;
    plain.level = VIP_SERVICE_UNRELIABLE;
    Pair pair(chosen, plain);
    VIP_DESCRIPTOR* d = pair.client.message(pair.client.buffer(8), 8);
    d->CS.Length = 9;
    require(pair.client.post_send(d), "VipPostSend");
    const CqEntry entry = take_entry(pair.client.send_cq);
    EXPECT_EQ(entry.code, VIP_SUCCESS);
    EXPECT_EQ(entry.recv, VIP_FALSE);
    EXPECT_EQ(reap_send(entry.vi).code, VIP_DESCRIPTOR_ERROR);
}

TEST(CqEntries, AnRdmaWriteWithImmediateDataIsAnEntryOfTheReceiveQueue) {
    EndOptions chosen;
    chosen.recv_cq = 8;
    Pair pair(EndOptions{}, chosen);
    pair.server.receive(16);
    pair.client.write(pair.client.buffer(8), 8, pair.server.target(pair.server.buffer(8)), VIP_CONTROL_IMMEDIATE, 1);
    const CqEntry entry = take_entry(pair.server.recv_cq);
    EXPECT_EQ(entry.code, VIP_SUCCESS);
    EXPECT_EQ(entry.vi, pair.server.vi);
    EXPECT_EQ(entry.recv, VIP_TRUE);
}

TEST(CqEntries, OneQueueServesManyVis) {
    constexpr int kVis = 32;
    EndOptions chosen;
    chosen.recv_cq = kVis;
    End server(across(chosen));
    End client;
    std::map<VIP_VI_HANDLE, int> expected;
    std::vector<VIP_VI_HANDLE> senders;
    for (int i = 0; i < kVis; ++i) {
        const VIP_VI_HANDLE to = server.create_vi();
        senders.push_back(client.create_vi());
        connect(client.nic, senders.back(), server.nic, to);
        require(VipPostRecv(to, server.message(server.buffer(8), 8), server.region), "VipPostRecv");
        expected[to] = i;
    }
    for (const VIP_VI_HANDLE vi : senders) {
        require(VipPostSend(vi, client.message(client.buffer(8), 8), client.region), "VipPostSend");
    }
    for (int i = 0; i < kVis; ++i) {
        const CqEntry entry = take_entry(server.recv_cq);
        ASSERT_EQ(entry.code, VIP_SUCCESS);
        ASSERT_EQ(expected.erase(entry.vi), 1u) << "each VI once";
        EXPECT_EQ(reap_recv(entry.vi).code, VIP_SUCCESS);
    }
}

// A program may post the descriptor of the send as the receive of the next message.
TEST(CqEntries, AnAnswerComesBehindTheSendThatItAnswers) {
    NEEDS_LEVEL(VIP_SERVICE_RELIABLE_RECEPTION);
    EndOptions chosen = with_one_cq(8);
    EndOptions server;
    chosen.level = server.level = VIP_SERVICE_RELIABLE_RECEPTION;
    Pair pair(chosen, server);
    for (int i = 0; i < 100; ++i) {
        pair.client.receive(16);
        pair.server.receive(16);
        pair.client.send(pair.client.buffer(8), 8);
        ASSERT_EQ(reap_recv(pair.server.vi).code, VIP_SUCCESS);
        pair.server.send(pair.server.buffer(8), 8);
        const CqEntry first = take_entry(pair.client.send_cq), second = take_entry(pair.client.send_cq);
        ASSERT_EQ(first.code, VIP_SUCCESS);
        ASSERT_EQ(second.code, VIP_SUCCESS);
        EXPECT_EQ(first.recv, VIP_FALSE) << "turn " << i;
        EXPECT_EQ(second.recv, VIP_TRUE) << "turn " << i;
        ASSERT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
        ASSERT_EQ(reap_recv(pair.client.vi).code, VIP_SUCCESS);
        ASSERT_EQ(reap_send(pair.server.vi).code, VIP_SUCCESS);
    }
}

TEST(CqSize, OneEntryIsEnoughForOneCompletionAtATime) {
    EndOptions chosen;
    chosen.recv_cq = 1;
    Pair pair(EndOptions{}, chosen);
    // More receives than entries, as long as they do not complete together (spec/compat Q3, Q4).
    for (int i = 0; i < 50; ++i) {
        pair.server.receive(16);
    }
    for (int i = 0; i < 50; ++i) {
        deliver(pair);
        ASSERT_EQ(take_entry(pair.server.recv_cq).code, VIP_SUCCESS);
        ASSERT_EQ(reap_recv(pair.server.vi).code, VIP_SUCCESS);
    }
    EXPECT_EQ(pair.server.errors.size(), 0u);
}

TEST(CqSize, ExactlyTheSizeAskedForMayBeOutstanding) {
    constexpr int kEntries = 16;
    EndOptions chosen;
    chosen.recv_cq = kEntries;
    Pair pair(EndOptions{}, chosen);
    for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < kEntries; ++i) {
            pair.server.receive(16);
        }
        for (int i = 0; i < kEntries; ++i) {
            deliver(pair);
        }
        for (int i = 0; i < kEntries; ++i) {
            ASSERT_EQ(take_entry(pair.server.recv_cq).code, VIP_SUCCESS);
            ASSERT_EQ(reap_recv(pair.server.vi).code, VIP_SUCCESS);
        }
    }
    EXPECT_EQ(pair.server.errors.size(), 0u);
    EXPECT_EQ(pair.server.state(), VIP_STATE_CONNECTED);
}

// ------------------------------------------------------------------------------------------------------ resize

TEST(CqResize, KeepsTheEntriesInOrderAndRefusesToLoseOne) {
    EndOptions chosen;
    chosen.recv_cq = 16;
    End end(chosen);
    std::vector<VIP_VI_HANDLE> order;
    for (int i = 0; i < 8; ++i) {
        order.push_back(end.create_vi());
        flush_one(end, order.back());
    }
    CONFORM(VIP_SUCCESS, kNone, VipResizeCQ(end.recv_cq, 64));
    CONFORM(VIP_SUCCESS, kNone, VipResizeCQ(end.recv_cq, 8));
    CONFORM(VIP_ERROR_RESOURCE, kNone, VipResizeCQ(end.recv_cq, 7));
    for (const VIP_VI_HANDLE expected : order) {
        const CqEntry entry = take_entry(end.recv_cq);
        ASSERT_EQ(entry.code, VIP_SUCCESS);
        EXPECT_EQ(entry.vi, expected);
    }
    CONFORM(VIP_SUCCESS, kNone, VipResizeCQ(end.recv_cq, 1));
}

TEST(CqResize, LeavesABlockedWaiterBlockedAndUsable) {
    EndOptions chosen;
    chosen.recv_cq = 4;
    Pair pair(EndOptions{}, chosen);
    pair.server.receive(16);
    auto waiter = in_background([&] {
        CqEntry entry;
        entry.code = VipCQWait(pair.server.recv_cq, kLongWait, &entry.vi, &entry.recv);
        return entry;
    });
    EXPECT_FALSE(ready(waiter, kQuietTime));
    CONFORM(VIP_SUCCESS, kNone, VipResizeCQ(pair.server.recv_cq, 36));
    EXPECT_FALSE(ready(waiter, kQuietTime));
    deliver(pair);
    ASSERT_TRUE(ready(waiter));
    const CqEntry entry = waiter.get();
    EXPECT_EQ(entry.code, VIP_SUCCESS);
    EXPECT_EQ(entry.vi, pair.server.vi);
}

TEST(CqResize, WhileCompletionsArriveLosesNone) {
    EndOptions chosen;
    chosen.recv_cq = 512;
    Pair pair(EndOptions{}, chosen);
    constexpr int kMessages = 400;
    for (int i = 0; i < kMessages; ++i) {
        pair.server.receive(16);
    }
    auto sender = in_background([&] {
        char* data = pair.client.buffer(16);
        VIP_DESCRIPTOR* d = pair.client.descriptor();
        for (int i = 0; i < kMessages; ++i) {
            fill(d, 0, {pair.client.piece(data, 16)});
            require(pair.client.post_send(d), "VipPostSend");
            require(reap_send(pair.client.vi).code, "VipSendDone");
        }
        return kMessages;
    });
    for (int i = 0; i < kMessages; ++i) {
        if (i % 8 == 0) {
            EXPECT_EQ(VipResizeCQ(pair.server.recv_cq, static_cast<VIP_ULONG>(512 + i % 64)), VIP_SUCCESS);
        }
        ASSERT_EQ(take_entry(pair.server.recv_cq).code, VIP_SUCCESS) << "entry " << i;
        ASSERT_EQ(reap_recv(pair.server.vi).code, VIP_SUCCESS);
    }
    EXPECT_EQ(sender.get(), kMessages);
    EXPECT_EQ(pair.server.errors.size(), 0u);
}

// -------------------------------------------------------------------------------------------------------- wait

TEST(CqWait, TimesOutNoEarlierThanAsked) {
    End end(with_one_cq(8));
    for (const VIP_ULONG timeout : {0ul, 1ul, 50ul}) {
        CqEntry entry;
        const Stopwatch start;
        CONFORM(VIP_TIMEOUT, kNone, VipCQWait(end.send_cq, timeout, &entry.vi, &entry.recv));
        EXPECT_GE(since(start), Millis{timeout});
        EXPECT_TRUE(in_time(start, Millis{timeout + 2000}));
    }
}

TEST(CqWait, TakesAnEntryThatIsThereAndWakesUpForOneThatComes) {
    EndOptions chosen;
    chosen.recv_cq = 8;
    Pair pair(EndOptions{}, chosen);
    for (const VIP_ULONG timeout : {VIP_ULONG{kLongWait}, VIP_ULONG{VIP_INFINITE}, ~VIP_ULONG{0}}) {
        pair.server.receive(16);
        deliver(pair);
        CqEntry entry;
        ASSERT_TRUE(CONFORM(VIP_SUCCESS, kNone, VipCQWait(pair.server.recv_cq, timeout, &entry.vi, &entry.recv)));
        EXPECT_EQ(entry.vi, pair.server.vi);
        EXPECT_EQ(entry.recv, VIP_TRUE);
        ASSERT_EQ(reap_recv(pair.server.vi).code, VIP_SUCCESS);

        pair.server.receive(16);
        auto waiter = in_background([&] {
            CqEntry woken;
            woken.code = VipCQWait(pair.server.recv_cq, timeout, &woken.vi, &woken.recv);
            return woken;
        });
        EXPECT_FALSE(ready(waiter, kQuietTime));
        deliver(pair);
        ASSERT_TRUE(ready(waiter));
        EXPECT_EQ(waiter.get().vi, pair.server.vi);
        ASSERT_EQ(reap_recv(pair.server.vi).code, VIP_SUCCESS);
    }
}

TEST(CqWait, ByManyThreadsGivesEachEntryToOneOfThem) {
    constexpr int kThreads = 4;
    constexpr int kMessages = 80;
    EndOptions chosen;
    chosen.recv_cq = kMessages;
    Pair pair(EndOptions{}, chosen);
    for (int i = 0; i < kMessages; ++i) {
        pair.server.receive(16);
    }
    std::atomic<int> taken{0};
    std::vector<std::future<int>> waiters;
    for (int i = 0; i < kThreads; ++i) {
        waiters.push_back(in_background([&] {
            int mine = 0;
            while (taken < kMessages) {
                CqEntry entry;
                const VIP_RETURN result = VipCQWait(pair.server.recv_cq, 100, &entry.vi, &entry.recv);
                if (result == VIP_SUCCESS) {
                    EXPECT_EQ(entry.vi, pair.server.vi);
                    EXPECT_EQ(reap_recv(entry.vi).code, VIP_SUCCESS);
                    ++taken;
                    ++mine;
                } else {
                    EXPECT_EQ(result, VIP_TIMEOUT);
                }
            }
            return mine;
        }));
    }
    for (int i = 0; i < kMessages; ++i) {
        deliver(pair);
    }
    int total = 0;
    for (auto& waiter : waiters) {
        ASSERT_TRUE(ready(waiter));
        total += waiter.get();
    }
    EXPECT_EQ(total, kMessages);
}

TEST(CqWait, IsTheOnlyWayToWaitForAQueueThatHasACompletionQueue) {
    Pair pair(with_one_cq(8));
    VIP_DESCRIPTOR* d = nullptr;
    pair.client.receive(16);
    const auto handler = [](VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_DESCRIPTOR*) {};
    CONFORM(VIP_ERROR_RESOURCE, kConnected, VipRecvWait(pair.client.vi, 0, &d));
    CONFORM(VIP_ERROR_RESOURCE, kConnected, VipSendWait(pair.client.vi, 0, &d));
    End idle(with_one_cq(8));
    CONFORM(VIP_ERROR_RESOURCE, kIdle, VipRecvWait(idle.vi, 0, &d));
    CONFORM(VIP_ERROR_RESOURCE, kIdle, VipSendWait(idle.vi, 0, &d));
    CONFORM(VIP_ERROR_RESOURCE, kIdle, VipRecvNotify(idle.vi, nullptr, handler));
    CONFORM(VIP_ERROR_RESOURCE, kIdle, VipSendNotify(idle.vi, nullptr, handler));
}

TEST(CqWait, LeavesTheOtherQueueOfTheViToItsOwnWait) {
    EndOptions chosen;
    chosen.recv_cq = 8;
    Pair pair(chosen);
    pair.server.receive(16);
    VIP_DESCRIPTOR* sent = pair.client.send(pair.client.buffer(8), 8);
    VIP_DESCRIPTOR* d = nullptr;
    CONFORM(VIP_SUCCESS, kConnected, VipSendWait(pair.client.vi, kLongWait, &d));
    EXPECT_EQ(d, sent);
}

}  // namespace
}  // namespace viaduct::conformance
