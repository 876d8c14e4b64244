// SPDX-License-Identifier: BSD-2-Clause
// Client/server connections: spec/calls 4.3 with spec/compat 6, 7 on top.
#include <cstring>
#include <thread>

#include "fixture.hpp"

namespace viaduct::conformance {
namespace {

/// One VipConnectWait with its outputs.
struct Waited {
    VIP_RETURN code = VIP_NOT_DONE;
    Address remote = Address::blank();
    VIP_VI_ATTRIBUTES attributes{};
    VIP_CONN_HANDLE connection = nullptr;
};

Waited wait_at(VIP_NIC_HANDLE nic, Address local, VIP_ULONG timeout = kLongWait) {
    Waited result;
    result.code =
        VipConnectWait(nic, local.get(), timeout, result.remote.get(), &result.attributes, &result.connection);
    return result;
}

/// A request from an end to a discriminator of another, on a thread.
std::future<VIP_RETURN> request_from(End& client, VIP_VI_HANDLE vi, VIP_NIC_HANDLE server_nic,
                                     const std::string& own, const std::string& wanted,
                                     VIP_ULONG timeout = kLongWait) {
    return in_background([&client, vi, server_nic, own, wanted, timeout] {
        Address local(client.nic, own);
        Address remote(server_nic, wanted);
        VIP_VI_ATTRIBUTES attributes{};
        return request(vi, local.get(), remote.get(), timeout, &attributes);
    });
}

void exchange(End& from, VIP_VI_HANDLE from_vi, End& to, VIP_VI_HANDLE to_vi, char mark) {
    VIP_DESCRIPTOR* receive = to.message(to.buffer(16), 16);
    VIP_DESCRIPTOR* send = from.message(from.buffer(16, mark), 16);
    require(VipPostRecv(to_vi, receive, to.region), "VipPostRecv");
    require(VipPostSend(from_vi, send, from.region), "VipPostSend");
    const Outcome got = reap_recv(to_vi);
    EXPECT_EQ(got.code, VIP_SUCCESS);
    EXPECT_EQ(got.descriptor, receive);
    EXPECT_EQ(*static_cast<char*>(receive->DS[0].Local.Data.Address), mark);
    EXPECT_EQ(reap_send(from_vi).code, VIP_SUCCESS);
}

// --------------------------------------------------------------------------------------------------- the basics

TEST(Connect, RequestWaitAcceptConnectsAndTellsEachSideOfTheOther) {
    EndOptions server_options;
    server_options.rdma_write = false;
    End client;
    End server(across(server_options));
    const std::string name = unique_discriminator(12);
    const std::string own = unique_discriminator(5);
    Address at(server.nic, name);
    Address local(client.nic, own);
    VIP_VI_ATTRIBUTES seen_by_client{};
    auto requester = in_background([&] {
        Address remote(server.nic, name);
        return request(client.vi, local.get(), remote.get(), kLongWait, &seen_by_client);
    });
    Waited waited = wait_at(server.nic, at);
    ASSERT_TRUE(CONFORM_RESULT("VipConnectWait", VIP_SUCCESS, VS::kNone, waited.code));
    EXPECT_EQ(client.state(), VIP_STATE_CONNECT_PENDING);
    EXPECT_EQ(waited.remote.host_bytes(), local.host_bytes());
    EXPECT_EQ(waited.remote.discriminator(), own) << "the acceptor reads the peer's identity there (spec/compat A7)";
    EXPECT_EQ(waited.attributes.ReliabilityLevel, client.wanted.level);
    EXPECT_EQ(waited.attributes.MaxTransferSize, client.limits.MaxTransferSize);
    EXPECT_TRUE(waited.attributes.EnableRdmaWrite);
    CONFORM(VIP_SUCCESS, kIdle, VipConnectAccept(waited.connection, server.vi));
    EXPECT_EQ(server.state(), VIP_STATE_CONNECTED);
    CONFORM_RESULT("VipConnectRequest", VIP_SUCCESS, VS::kIdle, requester.get());
    EXPECT_EQ(client.state(), VIP_STATE_CONNECTED);
    EXPECT_EQ(seen_by_client.ReliabilityLevel, server.wanted.level);
    EXPECT_EQ(seen_by_client.MaxTransferSize, server.limits.MaxTransferSize);
    EXPECT_FALSE(seen_by_client.EnableRdmaWrite) << "tells whether RDMA is possible there";
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipConnectAccept(waited.connection, server.vi));
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipConnectReject(waited.connection));
}

TEST(Connect, TheRemoteBufferGetsTheAddressAndNotOneByteMore) {
    for (const std::size_t length : {1, 4, 7, 16}) {
        End client;
        End server(across());
        const std::string name = unique_discriminator(length);
        auto requester = request_from(client, client.vi, server.nic, name, name);
        Waited waited = wait_at(server.nic, Address(server.nic, name));
        ASSERT_EQ(waited.code, VIP_SUCCESS);
        const std::size_t used = 4u + server.limits.NicAddressLen + length;
        EXPECT_EQ(waited.remote.used(), used);
        EXPECT_TRUE(waited.remote.untouched_from(used)) << "buffers are sized for the expected length (spec/compat A8)";
        VipConnectReject(waited.connection);
        EXPECT_EQ(requester.get(), VIP_REJECT);
    }
}

TEST(Connect, DiscriminatorsOfEveryLengthAndAlignmentMatch) {
    End client;
    End server(across());
    for (std::size_t length = 0; length <= 16; ++length) {
        const std::string name = unique_discriminator(length);
        auto requester = request_from(client, client.vi, server.nic, name, name);
        const Waited waited = wait_at(server.nic, Address(server.nic, name));
        ASSERT_EQ(waited.code, VIP_SUCCESS) << length;
        ASSERT_EQ(VipConnectAccept(waited.connection, server.vi), VIP_SUCCESS);
        ASSERT_EQ(requester.get(), VIP_SUCCESS) << length;
        VipDisconnect(client.vi);
        VipDisconnect(server.vi);
    }
}

TEST(Connect, AddressesMayLieAtOddPlacesInMemory) {
    End client;
    End server(across());
    const std::string name = unique_discriminator(8);
    Address at(server.nic, name);
    std::vector<unsigned char> odd(256);
    auto* shifted = reinterpret_cast<VIP_NET_ADDRESS*>(odd.data() + 2);
    std::memcpy(shifted, at.get(), at.used());
    auto requester = in_background([&] {
        VIP_VI_ATTRIBUTES attributes{};
        return request(client.vi, shifted, shifted, kLongWait, &attributes);
    });
    const Waited waited = wait_at(server.nic, at);
    ASSERT_EQ(waited.code, VIP_SUCCESS);
    EXPECT_EQ(VipConnectAccept(waited.connection, server.vi), VIP_SUCCESS);
    EXPECT_EQ(requester.get(), VIP_SUCCESS);
}

TEST(Connect, OneDiscriminatorIsNotThePrefixOfAnother) {
    End client;
    End server(across());
    const std::string name = unique_discriminator(8);
    auto waiter = in_background([&] { return wait_at(server.nic, Address(server.nic, name + "x"), 600); });
    Address local(client.nic, name);
    Address remote(server.nic, name);
    VIP_VI_ATTRIBUTES attributes{};
    CONFORM(VIP_NO_MATCH, kIdle, VipConnectRequest(client.vi, local.get(), remote.get(), kLongWait, &attributes));
    EXPECT_EQ(waiter.get().code, VIP_TIMEOUT);
}

TEST(Connect, HostBytesOfTheOwnAddressAreNotLookedAt) {
    End client;
    End server(across());
    const std::string name = unique_discriminator(8);
    const std::string garbage(server.limits.NicAddressLen, '\xEE');
    auto requester = in_background([&] {
        Address local(garbage, name);
        Address remote(server.nic, name);
        VIP_VI_ATTRIBUTES attributes{};
        return request(client.vi, local.get(), remote.get(), kLongWait, &attributes);
    });
    const Waited waited = wait_at(server.nic, Address(garbage, name));
    ASSERT_EQ(waited.code, VIP_SUCCESS) << "spec/compat A5";
    EXPECT_EQ(VipConnectAccept(waited.connection, server.vi), VIP_SUCCESS);
    EXPECT_EQ(requester.get(), VIP_SUCCESS);
}

TEST(Connect, TwoConnectionsMayHaveTheSamePairOfAddresses) {
    End client;
    End server(across());
    const VIP_VI_HANDLE client_two = client.create_vi();
    const VIP_VI_HANDLE server_two = server.create_vi();
    const std::string name = unique_discriminator(12);
    for (int i = 0; i < 2; ++i) {
        auto requester = request_from(client, i == 0 ? client.vi : client_two, server.nic, name, name);
        const Waited waited = wait_at(server.nic, Address(server.nic, name));
        ASSERT_EQ(waited.code, VIP_SUCCESS);
        ASSERT_EQ(VipConnectAccept(waited.connection, i == 0 ? server.vi : server_two), VIP_SUCCESS);
        ASSERT_EQ(requester.get(), VIP_SUCCESS) << "addresses are a rendezvous, not an identity (spec/compat A4)";
    }
    exchange(client, client.vi, server, server.vi, '1');
    exchange(server, server_two, client, client_two, '2');
    require(VipDisconnect(client.vi), "VipDisconnect");
    EXPECT_EQ(End::state_of(client_two), VIP_STATE_CONNECTED);
    exchange(client, client_two, server, server_two, '3');
    retire(client_two);
    retire(server_two);
}

TEST(Connect, BothEndsMayBelongToOneNicHandle) {
    End end;
    const VIP_VI_HANDLE other = end.create_vi();
    connect(end.nic, end.vi, end.nic, other);
    exchange(end, end.vi, end, other, 'a');
    exchange(end, other, end, end.vi, 'b');
    retire(other);
}

TEST(Connect, BothSidesMaySendAtOnce) {
    for (int i = 0; i < 20; ++i) {
        End client;
        End server(across());
        client.receive(16);
        server.receive(16);
        PendingRequest pending = pending_request(client, server);
        ASSERT_EQ(VipConnectAccept(pending.connection, server.vi), VIP_SUCCESS);
        server.send(server.buffer(16, 's'), 16);  // races with the accept on its way (spec/compat C14)
        ASSERT_EQ(pending.requester.get(), VIP_SUCCESS);
        client.send(client.buffer(16, 'c'), 16);
        EXPECT_EQ(reap_recv(client.vi).code, VIP_SUCCESS);
        EXPECT_EQ(reap_recv(server.vi).code, VIP_SUCCESS);
        EXPECT_EQ(reap_send(client.vi).code, VIP_SUCCESS);
        EXPECT_EQ(reap_send(server.vi).code, VIP_SUCCESS);
    }
}

// ----------------------------------------------------------------------------------------------- failing attempts

TEST(ConnectRequest, WithoutAWaiterTheAnswerIsNoMatchAfterAShortGrace) {
    End end;
    VIP_DESCRIPTOR* posted = end.receive(64);
    Address local(end.nic, unique_discriminator());
    for (const VIP_ULONG timeout : {VIP_ULONG{kLongWait}, VIP_ULONG{VIP_INFINITE}, ~VIP_ULONG{0}}) {
        Address unused(end.nic, unique_discriminator());
        VIP_VI_ATTRIBUTES attributes{};
        const auto start = Clock::now();
        CONFORM(VIP_NO_MATCH, kIdle, VipConnectRequest(end.vi, local.get(), unused.get(), timeout, &attributes));
        EXPECT_TRUE(in_time(start, Millis{1000})) << "the grace is at most 250 ms, plus a busy machine";
        EXPECT_EQ(end.state(), VIP_STATE_IDLE);
    }
    VIP_DESCRIPTOR* got = nullptr;
    EXPECT_EQ(VipRecvDone(end.vi, &got), VIP_NOT_DONE) << "a failed attempt never touches the queues";
    EXPECT_EQ(posted->CS.Status, 0u);
}

TEST(ConnectRequest, AHostThatDoesNotExistIsNoMatchOrTimeout) {
    End end;
    Address local(end.nic, unique_discriminator());
    Address nowhere(std::string(end.limits.NicAddressLen, '\x02'), unique_discriminator());
    VIP_VI_ATTRIBUTES attributes{};
    const VIP_RETURN result = VipConnectRequest(end.vi, local.get(), nowhere.get(), 300, &attributes);
    EXPECT_TRUE(result == VIP_NO_MATCH || result == VIP_TIMEOUT) << code_name(result) << " (spec/compat C5, C7)";
    EXPECT_EQ(end.state(), VIP_STATE_IDLE);
}

TEST(ConnectRequest, ARequestThatComesBeforeItsWaiterIsMetWithinTheGraceOrTheNextTry) {
    End client;
    End server(across());
    const std::string name = unique_discriminator();
    auto requester = request_from(client, client.vi, server.nic, name, name);
    EXPECT_FALSE(ready(requester, kQuietTime));
    const Waited waited = wait_at(server.nic, Address(server.nic, name));
    ASSERT_EQ(waited.code, VIP_SUCCESS);
    EXPECT_EQ(VipConnectAccept(waited.connection, server.vi), VIP_SUCCESS);
    EXPECT_EQ(requester.get(), VIP_SUCCESS);
}

TEST(ConnectRequest, ImpossibleArgumentsAreRefused) {
    End end;
    Address local(end.nic, unique_discriminator());
    Address remote(end.nic, unique_discriminator());
    VIP_VI_ATTRIBUTES a{};
    CONFORM(VIP_INVALID_PARAMETER, kIdle, VipConnectRequest(end.vi, local.get(), remote.get(), 0, &a));
    CONFORM(VIP_INVALID_PARAMETER, kIdle, VipConnectRequest(end.vi, nullptr, remote.get(), 100, &a));
    CONFORM(VIP_INVALID_PARAMETER, kIdle, VipConnectRequest(end.vi, local.get(), nullptr, 100, &a));
    CONFORM(VIP_INVALID_PARAMETER, kIdle, VipConnectRequest(end.vi, local.get(), remote.get(), 100, nullptr));
    Address long_one(end.nic, std::string(end.limits.MaxDiscriminatorLen + 1u, 'd'));
    CONFORM(VIP_INVALID_PARAMETER, kIdle, VipConnectRequest(end.vi, local.get(), long_one.get(), 100, &a));
    CONFORM(VIP_INVALID_PARAMETER, kIdle, VipConnectRequest(end.vi, long_one.get(), remote.get(), 100, &a));
    EXPECT_EQ(end.state(), VIP_STATE_IDLE);
}

TEST(ConnectRequest, TimesOutWithoutAnAnswerAndTheServerIsToldAtAccept) {
    End client;
    End server(across());
    VIP_DESCRIPTOR* posted = client.receive(64);
    const auto start = Clock::now();
    PendingRequest pending = pending_request(client, server, 100);
    CONFORM_RESULT("VipConnectRequest", VIP_TIMEOUT, VS::kIdle, pending.requester.get());
    EXPECT_GE(since(start), Millis{100});
    EXPECT_EQ(client.state(), VIP_STATE_IDLE);
    EXPECT_EQ(posted->CS.Status, 0u);
    CONFORM(VIP_TIMEOUT, kIdle, VipConnectAccept(pending.connection, server.vi));
    EXPECT_EQ(server.state(), VIP_STATE_IDLE) << "never a half-open VI";
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipConnectAccept(pending.connection, server.vi));
}

TEST(ConnectRequest, RejectIsToldToTheRequesterWhichKeepsItsReceives) {
    End client;
    End server(across());
    VIP_DESCRIPTOR* posted = client.receive(64);
    PendingRequest pending = pending_request(client, server);
    CONFORM(VIP_SUCCESS, kNone, VipConnectReject(pending.connection));
    CONFORM_RESULT("VipConnectRequest", VIP_REJECT, VS::kIdle, pending.requester.get());
    EXPECT_EQ(client.state(), VIP_STATE_IDLE);
    EXPECT_EQ(posted->CS.Status, 0u);
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipConnectReject(pending.connection));
    connect(client.nic, client.vi, server.nic, server.vi);
    server.send(server.buffer(8, 'r'), 8);
    EXPECT_EQ(reap_recv(client.vi).descriptor, posted) << "the same VI tries again (spec/compat C8)";
}

TEST(ConnectRequest, RejectAfterTheRequesterGaveUpStillSucceeds) {
    End client;
    End server(across());
    PendingRequest pending = pending_request(client, server, 50);
    EXPECT_EQ(pending.requester.get(), VIP_TIMEOUT);
    CONFORM(VIP_SUCCESS, kNone, VipConnectReject(pending.connection));
}

TEST(ConnectRequest, DisconnectFromAnotherThreadEndsTheAttempt) {
    End client;
    End server(across());
    PendingRequest pending = pending_request(client, server);
    EXPECT_EQ(client.state(), VIP_STATE_CONNECT_PENDING);
    CONFORM(VIP_SUCCESS, kPending, VipDisconnect(client.vi));
    ASSERT_TRUE(ready(pending.requester));
    EXPECT_NE(pending.requester.get(), VIP_SUCCESS);
    EXPECT_EQ(client.state(), VIP_STATE_IDLE);
    EXPECT_EQ(VipConnectAccept(pending.connection, server.vi), VIP_TIMEOUT);
    EXPECT_EQ(server.state(), VIP_STATE_IDLE);
}

TEST(ConnectRequest, EndsWhenItsOwnNicIsClosedAndTheServerLearnsItAtAccept) {
    End client;
    End server(across());
    PendingRequest pending = pending_request(client, server);
    require(VipCloseNic(client.nic), "VipCloseNic");
    client.nic = nullptr;
    ASSERT_TRUE(ready(pending.requester));
    EXPECT_NE(pending.requester.get(), VIP_SUCCESS);
    EXPECT_EQ(VipConnectAccept(pending.connection, server.vi), VIP_TIMEOUT);
    EXPECT_EQ(server.state(), VIP_STATE_IDLE);
}

TEST(ConnectRequest, ToAServerThatClosesItsNicGivesACodeThatProgramsRetryOn) {
    End client;
    End server(across());
    PendingRequest pending = pending_request(client, server, 3000);
    require(VipCloseNic(server.nic), "VipCloseNic");
    server.nic = nullptr;
    ASSERT_TRUE(ready(pending.requester));
    const VIP_RETURN result = pending.requester.get();
    EXPECT_TRUE(result == VIP_TIMEOUT || result == VIP_NO_MATCH || result == VIP_REJECT ||
                result == VIP_ERROR_RESOURCE)
        << code_name(result) << " (spec/compat C5)";
    EXPECT_EQ(client.state(), VIP_STATE_IDLE);
}

TEST(ConnectRequest, AThousandFailingTriesLeaveNothingBehind) {
    End end;
    Address local(end.nic, unique_discriminator());
    Address unused(end.nic, unique_discriminator());
    VIP_VI_ATTRIBUTES attributes{};
    const auto end_of_test = Clock::now() + Millis{1000};
    int tries = 0;
    while (Clock::now() < end_of_test && tries < 1000) {
        // One millisecond each: whatever grace there is may not exceed the caller's own timeout (spec/compat C6).
        const VIP_RETURN result = VipConnectRequest(end.vi, local.get(), unused.get(), 1, &attributes);
        ASSERT_TRUE(result == VIP_NO_MATCH || result == VIP_TIMEOUT) << code_name(result);
        ++tries;
    }
    EXPECT_GT(tries, 20) << "a try with a timeout of 1 ms has to be cheap";
    End server(across());
    connect(end.nic, end.vi, server.nic, server.vi);
}

// --------------------------------------------------------------------------------------------------------- wait

TEST(ConnectWait, TimesOutNoEarlierThanAskedAndZeroIsOnePoll) {
    End end;
    for (const VIP_ULONG timeout : {0ul, 1ul, 40ul}) {
        Waited waited;
        Address local(end.nic, unique_discriminator());
        const auto start = Clock::now();
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

TEST(ConnectWait, WaitersOnOneDiscriminatorAreServedInTheirOrder) {
    End server(across());
    const std::string name = unique_discriminator();
    std::vector<std::future<Waited>> waiters;
    for (int i = 0; i < 3; ++i) {
        waiters.push_back(in_background(
            [&server, &name] { return wait_at(server.nic, Address(server.nic, name), VIP_INFINITE); }));
        EXPECT_FALSE(ready(waiters.back(), kQuietTime)) << "gives the thread time to be in the queue";
    }
    End client;
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

TEST(ConnectWait, RequestsThatComeWhileTheListenerIsAwayAreMetWhenItComesBack) {
    // Three requests in a row without a retry against one acceptor (spec/compat C6).
    End client;
    End server(across());
    const std::string name = unique_discriminator();
    auto requests = in_background([&] {
        std::vector<VIP_RETURN> results;
        for (int i = 0; i < 3; ++i) {
            const VIP_VI_HANDLE vi = client.create_vi();
            Address local(client.nic, name);
            Address remote(server.nic, name);
            VIP_VI_ATTRIBUTES attributes{};
            results.push_back(i == 0 ? request(vi, local.get(), remote.get(), kLongWait, &attributes)
                                     : VipConnectRequest(vi, local.get(), remote.get(), kLongWait, &attributes));
        }
        return results;
    });
    for (int i = 0; i < 3; ++i) {
        const Waited waited = wait_at(server.nic, Address(server.nic, name), 2000);
        ASSERT_EQ(waited.code, VIP_SUCCESS) << "request " << i;
        ASSERT_EQ(VipConnectAccept(waited.connection, server.create_vi()), VIP_SUCCESS);
    }
    for (const VIP_RETURN result : requests.get()) {
        EXPECT_EQ(result, VIP_SUCCESS) << code_name(result);
    }
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
