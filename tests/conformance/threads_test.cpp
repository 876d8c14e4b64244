// SPDX-License-Identifier: BSD-2-Clause
// One object used by several threads at once (spec/calls 4: every call is safe on the same object; spec/compat L6,
// C12, T16, Q20). Made to be run under the thread sanitizer.
#include <set>
#include <thread>

#include "fixture.hpp"

namespace viaduct::conformance {
namespace {

constexpr int kThreads = 4;

/// Runs the function on several threads and waits for all.
void together(int threads, const std::function<void(int)>& function) {
    std::vector<std::future<void>> running;
    for (int i = 0; i < threads; ++i) {
        running.push_back(in_background([&function, i] { function(i); }));
    }
    for (auto& each : running) {
        ASSERT_TRUE(ready(each, Millis{60000}));
        each.get();
    }
}

TEST(ManyThreads, PostOnOneViAndEachDescriptorComesBackOnce) {
    constexpr int kEach = 100;
    EndOptions chosen;
    chosen.memory = 4 << 20;
    Pair pair(chosen);
    std::set<VIP_DESCRIPTOR*> expected;
    std::vector<std::vector<VIP_DESCRIPTOR*>> own(kThreads);
    for (int i = 0; i < kThreads; ++i) {
        for (int n = 0; n < kEach; ++n) {
            pair.server.receive(16);
            own[static_cast<std::size_t>(i)].push_back(pair.client.message(pair.client.buffer(16), 16));
            expected.insert(own[static_cast<std::size_t>(i)].back());
        }
    }
    std::mutex mutex;
    together(2 * kThreads, [&](int i) {
        if (i < kThreads) {
            for (VIP_DESCRIPTOR* d : own[static_cast<std::size_t>(i)]) {
                require(pair.client.post_send(d), "VipPostSend");
            }
            return;
        }
        for (bool more = true; more;) {
            VIP_DESCRIPTOR* d = nullptr;
            const VIP_RETURN result = VipSendDone(pair.client.vi, &d);
            const std::lock_guard lock(mutex);
            if (result == VIP_SUCCESS) {
                EXPECT_EQ(expected.erase(d), 1u) << "handed out twice";
            } else {
                EXPECT_EQ(d, nullptr);
            }
            more = !expected.empty();
        }
    });
    for (int i = 0; i < kThreads * kEach; ++i) {
        ASSERT_EQ(reap_recv(pair.server.vi).code, VIP_SUCCESS);
    }
}

TEST(ManyThreads, TakeReceivesOfOneViEachOnce) {
    constexpr int kMessages = 400;
    EndOptions chosen;
    chosen.memory = 4 << 20;
    Pair pair(chosen);
    for (int i = 0; i < kMessages; ++i) {
        pair.server.receive(16);
    }
    std::atomic<int> taken{0};
    together(kThreads + 1, [&](int i) {
        if (i == 0) {
            char* data = pair.client.buffer(16);
            VIP_DESCRIPTOR* d = pair.client.descriptor();
            for (int n = 0; n < kMessages; ++n) {
                fill(d, 0, {pair.client.piece(data, 16)});
                require(pair.client.post_send(d), "VipPostSend");
                require(reap_send(pair.client.vi).code, "VipSendDone");
            }
            return;
        }
        while (taken < kMessages) {
            VIP_DESCRIPTOR* d = nullptr;
            const VIP_RETURN result = VipRecvDone(pair.server.vi, &d);
            taken += result == VIP_SUCCESS;
            EXPECT_TRUE(result == VIP_SUCCESS || d == nullptr);
            std::this_thread::yield();
        }
    });
    EXPECT_EQ(taken, kMessages);
}

TEST(ManyThreads, CreateAndDestroyOnOneNic) {
    End end;
    together(kThreads, [&](int) {
        for (int n = 0; n < 30; ++n) {
            VIP_VI_ATTRIBUTES attributes = end.vi_attributes();
            VIP_CQ_HANDLE cq = nullptr;
            VIP_PROTECTION_HANDLE tag = nullptr;
            VIP_VI_HANDLE vi = nullptr;
            require(VipCreateCQ(end.nic, 8, &cq), "VipCreateCQ");
            require(VipCreatePtag(end.nic, &tag), "VipCreatePtag");
            attributes.Ptag = tag;
            require(VipCreateVi(end.nic, &attributes, cq, cq, &vi), "VipCreateVi");
            require(VipDestroyVi(vi), "VipDestroyVi");
            require(VipDestroyCQ(cq), "VipDestroyCQ");
            require(VipDestroyPtag(end.nic, tag), "VipDestroyPtag");
        }
    });
}

TEST(ManyThreads, RegisterMemoryWhileMessagesFlow) {
    constexpr int kRounds = 500, kMessages = 50;  // of each at least
    Pair pair;
    std::atomic<bool> stop{false};
    std::atomic<int> messages{0};
    auto traffic = in_background([&] {
        VIP_DESCRIPTOR* send = pair.client.message(pair.client.buffer(64), 64);
        VIP_DESCRIPTOR* receive = pair.server.message(pair.server.buffer(64), 64);
        while (!stop) {
            send->CS.Length = receive->CS.Length = 64;
            require(pair.server.post_recv(receive), "VipPostRecv");
            require(pair.client.post_send(send), "VipPostSend");
            require(reap_send(pair.client.vi).code, "VipSendDone");
            require(reap_recv(pair.server.vi).code, "VipRecvDone");
            ++messages;
        }
    });
    const auto flows_on = [&] { return !ready(traffic, Millis{0}); };
    std::vector<char> memory(1 << 16);
    together(2, [&](int i) {
        // On a busy machine the other thread may begin when these rounds would have been over.
        for (int n = 0; n < kRounds || (messages < kMessages && flows_on()); ++n) {
            VIP_MEM_HANDLE handle = 0;
            char* at = memory.data() + i * 1000 + n % kRounds;
            require(VipRegisterMem(pair.client.nic, at, 5000, nullptr, &handle), "VipRegisterMem");
            VIP_MEM_ATTRIBUTES attributes{};
            require(VipQueryMem(pair.client.nic, at + 10, handle, &attributes), "VipQueryMem");
            require(VipDeregisterMem(pair.client.nic, at, handle), "VipDeregisterMem");
        }
    });
    stop = true;
    traffic.get();
    EXPECT_GE(messages, kMessages);
}

TEST(ManyThreads, OpenAndCloseNicsWhileOthersWork) {
    Pair pair;
    together(kThreads, [&](int i) {
        for (int n = 0; n < 8; ++n) {
            if (i == 0) {
                pair.server.receive(16);
                pair.client.send(pair.client.buffer(16), 16);
                require(reap_recv(pair.server.vi).code, "VipRecvDone");
                require(reap_send(pair.client.vi).code, "VipSendDone");
            } else {
                Pair other;
            }
        }
    });
}

TEST(ManyThreads, UseTwoHandlesOfOneNicLikeAClientAndAServerThread) {
    // Each thread has its own open, CQ, tag and memory (spec/compat L6).
    EndOptions chosen;
    chosen.recv_cq = 64;
    Pair pair(chosen);
    constexpr int kMessages = 300;
    for (End* end : {&pair.client, &pair.server}) {
        for (int i = 0; i < kMessages; ++i) {
            end->receive(16);
        }
    }
    together(2, [&](int i) {
        End& end = i == 0 ? pair.client : pair.server;
        char* data = end.buffer(16);
        VIP_DESCRIPTOR* d = end.descriptor();
        for (int n = 0; n < kMessages; ++n) {
            fill(d, 0, {end.piece(data, 16)});
            require(end.post_send(d), "VipPostSend");
            require(reap_send(end.vi).code, "VipSendDone");
            VIP_VI_HANDLE vi = nullptr;
            VIP_BOOLEAN recv = VIP_FALSE;
            require(VipCQWait(end.recv_cq, kLongWait, &vi, &recv), "VipCQWait");
            require(reap_recv(vi).code, "VipRecvDone");
        }
    });
}

TEST(ManyThreads, QueryPostAndDisconnectOneViAtOnce) {
    for (int round = 0; round < 5; ++round) {
        Pair pair;
        std::atomic<bool> closed{false};
        for (int i = 0; i < 50; ++i) {
            pair.server.receive(64);
        }
        std::vector<VIP_DESCRIPTOR*> sends;
        for (int i = 0; i < 40; ++i) {
            sends.push_back(pair.client.message(pair.client.buffer(16), 16));
        }
        together(3, [&](int i) {
            if (i == 0) {
                for (VIP_DESCRIPTOR* d : sends) {
                    EXPECT_EQ(pair.client.post_send(d), VIP_SUCCESS);
                }
            } else if (i == 1) {
                while (!closed) {
                    pair.client.state();
                    VIP_DESCRIPTOR* d = nullptr;
                    VipSendDone(pair.client.vi, &d);
                }
            } else {
                never([] { return false; }, Millis{1});
                EXPECT_EQ(VipDisconnect(pair.client.vi), VIP_SUCCESS);
                closed = true;
            }
        });
        // Sends posted after the disconnect were flushed; all of them come back, so that nothing is left.
        while (reap_send(pair.client.vi).descriptor != nullptr) {
        }
        EXPECT_EQ(pair.client.state(), VIP_STATE_IDLE);
    }
}

TEST(ManyThreads, CloseANicUnderThreadsThatUseIt) {
    for (int round = 0; round < 5; ++round) {
        Pair pair;
        for (int i = 0; i < 20; ++i) {
            pair.client.receive(64);
        }
        const VIP_NIC_HANDLE nic = pair.client.nic;
        const VIP_VI_HANDLE vi = pair.client.vi;
        std::atomic<bool> closed{false};
        together(kThreads, [&](int i) {
            if (i == 0) {
                never([] { return false; }, Millis{2});
                EXPECT_EQ(VipCloseNic(nic), VIP_SUCCESS);
                closed = true;
                return;
            }
            while (!closed) {
                VIP_DESCRIPTOR* d = nullptr;
                VIP_NIC_ATTRIBUTES attributes{};
                const VIP_RETURN result = VipRecvDone(vi, &d);
                EXPECT_TRUE(result == VIP_NOT_DONE || result == VIP_DESCRIPTOR_ERROR ||
                            result == VIP_INVALID_PARAMETER)
                    << code_name(result);
                VipQueryNic(nic, &attributes);
            }
        });
        pair.client.nic = nullptr;
    }
}

}  // namespace
}  // namespace viaduct::conformance
