// SPDX-License-Identifier: BSD-2-Clause
// Client/server connections, the waiting and accepting side: spec/calls 4.3 with spec/compat 6, 7 on top.
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include "connecting.hpp"

namespace viaduct::conformance {
namespace {

// --------------------------------------------------------------------------------------------------------- wait

TEST(ConnectWait, TimesOutNoEarlierThanAskedAndZeroIsOnePoll) {
    End end;
    for (const VIP_ULONG timeout : {0ul, 1ul, 40ul}) {
        Waited waited;
        Address local(end.nic, unique_discriminator());
        const Stopwatch start;
        CONFORM(VIP_TIMEOUT, kNone, VipConnectWait(end.nic, local.get(), timeout, waited.remote.get(),
                                                   &waited.attributes, &waited.connection));
        EXPECT_GE(since(start), Millis{timeout});
        EXPECT_TRUE(in_time(start, Millis{timeout + 2000}));
        EXPECT_TRUE(waited.remote.untouched_from(0));
    }
}

TEST(ConnectWait, ATimeoutOfZeroFindsARequestThatIsThere) {
    End client;
    End server(across());
    const std::string name = unique_discriminator();
    auto requester = request_from(client, client.vi, server.nic, name, name);
    Waited waited;
    ASSERT_TRUE(eventually([&] {
        waited = wait_at(server.nic, Address(server.nic, name), 0);
        return waited.code != VIP_TIMEOUT;
    }));
    ASSERT_EQ(waited.code, VIP_SUCCESS);
    EXPECT_EQ(VipConnectAccept(waited.connection, server.vi), VIP_SUCCESS);
    EXPECT_EQ(requester.get(), VIP_SUCCESS);
}

TEST(ConnectWait, ImpossibleArgumentsAreRefused) {
    End end;
    Address local(end.nic, unique_discriminator());
    Waited w;
    CONFORM(VIP_INVALID_PARAMETER, kNone,
            VipConnectWait(end.nic, nullptr, 0, w.remote.get(), &w.attributes, &w.connection));
    CONFORM(VIP_INVALID_PARAMETER, kNone,
            VipConnectWait(end.nic, local.get(), 0, nullptr, &w.attributes, &w.connection));
    CONFORM(VIP_INVALID_PARAMETER, kNone,
            VipConnectWait(end.nic, local.get(), 0, w.remote.get(), nullptr, &w.connection));
    CONFORM(VIP_INVALID_PARAMETER, kNone,
            VipConnectWait(end.nic, local.get(), 0, w.remote.get(), &w.attributes, nullptr));
    Address long_one(end.nic, std::string(end.limits.MaxDiscriminatorLen + 1u, 'd'));
    CONFORM(VIP_INVALID_PARAMETER, kNone,
            VipConnectWait(end.nic, long_one.get(), 0, w.remote.get(), &w.attributes, &w.connection));
}

TEST(ConnectWait, WaitsOnDifferentDiscriminatorsFromSeveralThreadsGetTheirOwnRequests) {
    End server(across());
    constexpr int kWaiters = 8;
    std::vector<std::string> names;
    std::vector<std::future<Waited>> waiters;
    for (int i = 0; i < kWaiters; ++i) {
        names.push_back(unique_discriminator(6));
        waiters.push_back(in_background([&server, name = names.back()] {
            return wait_at(server.nic, Address(server.nic, name), VIP_INFINITE);
        }));
    }
    End client;
    for (int i = kWaiters - 1; i >= 0; --i) {
        const std::string own = unique_discriminator(3);
        auto requester = request_from(client, client.vi, server.nic, own, names[static_cast<std::size_t>(i)]);
        Waited waited = waiters[static_cast<std::size_t>(i)].get();
        ASSERT_EQ(waited.code, VIP_SUCCESS);
        EXPECT_EQ(waited.remote.discriminator(), own);
        EXPECT_EQ(VipConnectReject(waited.connection), VIP_SUCCESS);
        EXPECT_EQ(requester.get(), VIP_REJECT);
    }
}

/// Whether that thread of this process sleeps, which one that waits for a processor does not.
bool sleeps(pid_t thread) {
    std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
    std::string text;
    std::getline(file, text);
    const std::size_t name_ends = text.rfind(')');
    return name_ends != std::string::npos && text.compare(name_ends, 3, ") S") == 0;
}

TEST(ConnectWait, WaitersOnOneDiscriminatorAreServedInTheirOrder) {
    End server(across());
    const std::string name = unique_discriminator();
    End client;
    // Its answer comes behind what other threads of this process have asked before.
    const auto ask = [&] {
        Address unused(server.nic, unique_discriminator());
        VIP_VI_ATTRIBUTES attributes{};
        return VipConnectRequest(client.vi, unused.get(), unused.get(), kLongWait, &attributes);
    };
    EXPECT_EQ(ask(), VIP_NO_MATCH);
    std::array<std::atomic<pid_t>, 3> threads{};
    std::vector<std::future<Waited>> waiters;
    for (std::atomic<pid_t>& thread : threads) {
        waiters.push_back(in_background([&server, &name, &thread] {
            Address local(server.nic, name);
            thread = gettid();
            return wait_at(server.nic, local, VIP_INFINITE);
        }));
        EXPECT_TRUE(eventually([&] {
            const auto asleep = [&] { return thread != 0 && sleeps(thread); };
            return asleep() && never([&] { return !asleep(); }, Millis{5});
        })) << "the thread does not wait";
        EXPECT_FALSE(ready(waiters.back(), kQuietTime));
        EXPECT_EQ(ask(), VIP_NO_MATCH) << "the waiter is in the queue by now";
    }
    for (std::size_t i = 0; i < waiters.size(); ++i) {
        auto requester = request_from(client, client.vi, server.nic, name, name);
        ASSERT_TRUE(ready(waiters[i])) << "waiter " << i << " was first in line";
        for (std::size_t later = i + 1; later < waiters.size(); ++later) {
            EXPECT_FALSE(ready(waiters[later], Millis{0})) << "one request wakes one waiter";
        }
        Waited waited = waiters[i].get();
        ASSERT_EQ(waited.code, VIP_SUCCESS);
        EXPECT_EQ(VipConnectReject(waited.connection), VIP_SUCCESS);
        EXPECT_EQ(requester.get(), VIP_REJECT);
    }
}

TEST(ConnectWait, AListenerOnOneDiscriminatorServesManyClients) {
    constexpr int kClients = 8;
    End server(across());
    const std::string name = unique_discriminator();
    std::vector<std::unique_ptr<End>> clients;
    std::vector<std::future<VIP_RETURN>> requests;
    for (int i = 0; i < kClients; ++i) {
        clients.push_back(std::make_unique<End>());
        requests.push_back(
            request_from(*clients.back(), clients.back()->vi, server.nic, std::string(1, static_cast<char>(i)), name));
    }
    std::vector<VIP_VI_HANDLE> accepted;
    for (int i = 0; i < kClients; ++i) {
        Waited waited = wait_at(server.nic, Address(server.nic, name));
        ASSERT_EQ(waited.code, VIP_SUCCESS);
        const VIP_VI_HANDLE vi = server.create_vi();
        ASSERT_EQ(VipConnectAccept(waited.connection, vi), VIP_SUCCESS);
        accepted.push_back(vi);
        const int who = waited.remote.discriminator().at(0);
        exchange(server, vi, *clients.at(static_cast<std::size_t>(who)), clients.at(static_cast<std::size_t>(who))->vi,
                 'k');
    }
    for (auto& each : requests) {
        EXPECT_EQ(each.get(), VIP_SUCCESS);
    }
    for (const VIP_VI_HANDLE vi : accepted) {
        retire(vi);
    }
}

// Three requests in a row without a retry against one acceptor (spec/compat C6), each of which is there before the
// listener is. False: one was told, after the 100 ms for which a request is held, that no program waits there. On a
// machine that keeps the listener or its call away for so long that is right; before they are over it never is.
bool all_are_held() {
    constexpr Millis kHeldFor{75};  // at least
    End client;
    End server(across());
    const std::string name = unique_discriminator();
    std::atomic<int> refused{0};
    auto requests = in_background([&] {
        std::vector<VIP_RETURN> results;
        for (int i = 0; i < 3; ++i) {
            const VIP_VI_HANDLE vi = client.create_vi();
            Address local(client.nic, name);
            Address remote(server.nic, name);
            VIP_VI_ATTRIBUTES attributes{};
            VIP_RETURN result = VIP_NO_MATCH;
            eventually([&] {
                result = VipConnectRequest(vi, local.get(), remote.get(), kLongWait, &attributes);
                refused += i != 0 && result == VIP_NO_MATCH;
                return result != VIP_NO_MATCH;
            });
            results.push_back(result);
        }
        return results;
    });
    Stopwatch gone;
    int refused_before = 0;
    for (int i = 0; i < 3; ++i) {
        if (i != 0) {
            never([] { return false; });
        }
        const bool back_in_time = i != 0 && since(gone) < kHeldFor;
        const Waited waited = wait_at(server.nic, Address(server.nic, name));
        EXPECT_EQ(waited.code, VIP_SUCCESS) << "request " << i;
        if (i != 0) {
            EXPECT_TRUE(refused == refused_before || !back_in_time || starved(gone))
                << "request " << i << " was held and not met";
            EXPECT_TRUE(refused == refused_before || since(gone) >= kHeldFor) << "request " << i << " was not held";
        }
        refused_before = refused;
        gone = Stopwatch();
        EXPECT_EQ(VipConnectAccept(waited.connection, server.create_vi()), VIP_SUCCESS);
    }
    for (const VIP_RETURN result : requests.get()) {
        EXPECT_EQ(result, VIP_SUCCESS) << code_name(result);
    }
    return refused == 0;
}

TEST(ConnectWait, RequestsThatComeWhileTheListenerIsAwayAreMetWhenItComesBack) {
    bool met = false;
    for (int turn = 0; turn < 20 && !met && !HasFailure(); ++turn) {
        met = all_are_held();
    }
    EXPECT_TRUE(met) << "20 times a request was not met by the listener that came back";
}

// ------------------------------------------------------------------------------------------------------- accept

TEST(ConnectAccept, AMismatchTellsTheRequesterNothingAndCanBeMended) {
    EndOptions other;
    other.level = VIP_SERVICE_UNRELIABLE;
    other.max_transfer = 4096;
    End client;
    End server(across(other));
    PendingRequest pending = pending_request(client, server);
    CONFORM(VIP_INVALID_RELIABILITY_LEVEL, kIdle, VipConnectAccept(pending.connection, server.vi));
    VIP_VI_ATTRIBUTES attributes = server.vi_attributes();
    attributes.ReliabilityLevel = pending.attributes.ReliabilityLevel;
    CONFORM(VIP_SUCCESS, kIdle, VipSetViAttributes(server.vi, &attributes));
    CONFORM(VIP_INVALID_MTU, kIdle, VipConnectAccept(pending.connection, server.vi));
    EXPECT_EQ(server.state(), VIP_STATE_IDLE);
    EXPECT_FALSE(ready(pending.requester, kQuietTime));
    EXPECT_EQ(client.state(), VIP_STATE_CONNECT_PENDING);
    attributes.MaxTransferSize = pending.attributes.MaxTransferSize;
    CONFORM(VIP_SUCCESS, kIdle, VipSetViAttributes(server.vi, &attributes));
    CONFORM(VIP_SUCCESS, kIdle, VipConnectAccept(pending.connection, server.vi));
    EXPECT_EQ(pending.requester.get(), VIP_SUCCESS);
    exchange(client, client.vi, server, server.vi, 'm');
}

TEST(ConnectAccept, WithoutRoomForFilesTheRequestStaysAndIsAcceptedLater) {
    End client;
    End server(across());
    PendingRequest pending = pending_request(client, server);
    rlimit usual{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &usual), 0);
    const int next = dup(STDERR_FILENO);
    ASSERT_GE(next, 0);
    close(next);
    rlimit few = usual;
    few.rlim_cur = static_cast<rlim_t>(next);
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    const VIP_RETURN tried = VipConnectAccept(pending.connection, server.vi);
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &usual), 0);
    if (tried != VIP_SUCCESS) {  // some NICs need no file for a connection
        EXPECT_EQ(tried, VIP_ERROR_RESOURCE);
        EXPECT_EQ(server.state(), VIP_STATE_IDLE);
        CONFORM(VIP_SUCCESS, kIdle, VipConnectAccept(pending.connection, server.vi));
    }
    ASSERT_TRUE(ready(pending.requester));
    EXPECT_EQ(pending.requester.get(), VIP_SUCCESS);
}

TEST(ConnectAccept, QualityOfServiceIsComparedWhereANicOffersAny) {
    End client;
    End server(across());
    VIP_VI_ATTRIBUTES attributes = server.vi_attributes();
    int something = 0;
    attributes.QoS = &something;
    if (VipSetViAttributes(server.vi, &attributes) != VIP_SUCCESS) {
        cannot_show("VipConnectAccept", VIP_INVALID_QOS, VS::kIdle, "the NIC offers one QoS only, so none can differ");
        cannot_show("VipConnectPeerDone", VIP_INVALID_QOS, VS::kPending,
                    "the NIC offers one QoS only, so none can differ");
        cannot_show("VipConnectPeerWait", VIP_INVALID_QOS, VS::kPending,
                    "the NIC offers one QoS only, so none can differ");
        return;
    }
    PendingRequest pending = pending_request(client, server);
    CONFORM(VIP_INVALID_QOS, kIdle, VipConnectAccept(pending.connection, server.vi));
    EXPECT_EQ(VipConnectReject(pending.connection), VIP_SUCCESS);
    EXPECT_EQ(pending.requester.get(), VIP_REJECT);
}

TEST(ConnectAccept, TagsAndRdmaEnablesNeedNotAgree) {
    EndOptions other;
    other.null_ptag = true;
    other.rdma_write = false;
    other.rdma_read = false;
    Pair pair(EndOptions{}, other);
    EXPECT_EQ(pair.client.state(), VIP_STATE_CONNECTED);
    exchange(pair.client, pair.client.vi, pair.server, pair.server.vi, 't');
}

TEST(ConnectAccept, ACrowdOfConnectionsFromManyThreads) {
    constexpr int kThreads = 8;
    constexpr int kRounds = 5;
    std::vector<std::future<int>> workers;
    workers.reserve(kThreads);
    for (int i = 0; i < kThreads; ++i) {
        workers.push_back(in_background([] {
            Pair pair;
            for (int round = 0; round < kRounds; ++round) {
                VipDisconnect(pair.client.vi);
                VipDisconnect(pair.server.vi);
                connect(pair.client.nic, pair.client.vi, pair.server.nic, pair.server.vi);
                exchange(pair.client, pair.client.vi, pair.server, pair.server.vi, 'z');
            }
            return kRounds;
        }));
    }
    for (auto& worker : workers) {
        EXPECT_EQ(worker.get(), kRounds);
    }
}

}  // namespace
}  // namespace viaduct::conformance
