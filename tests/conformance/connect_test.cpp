// SPDX-License-Identifier: BSD-2-Clause
// Client/server connections, both sides together and the requester's: spec/calls 4.3 with spec/compat 6, 7 on top.

#include <cstring>

#include "connecting.hpp"

namespace viaduct::conformance {
namespace {

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
        const Stopwatch start;
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
    PendingRequest pending = pending_request(client, server, VIP_INFINITE);
    require(VipCloseNic(server.nic), "VipCloseNic");
    server.nic = nullptr;
    const bool turned_away = ready(pending.requester);
    EXPECT_TRUE(turned_away) << "the NIC is open under another handle, and the requester asks without end";
    if (!turned_away) {
        EXPECT_EQ(VipDisconnect(client.vi), VIP_SUCCESS);
        return;
    }
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
    constexpr int kCheap = 21;  // of them in a second
    const Stopwatch start;
    int tries = 0;
    while (tries < kCheap || (since(start) < Millis{1000} && tries < 1000)) {
        // One millisecond each: whatever grace there is may not exceed the caller's own timeout (spec/compat C6).
        const VIP_RETURN result = VipConnectRequest(end.vi, local.get(), unused.get(), 1, &attributes);
        ASSERT_TRUE(result == VIP_NO_MATCH || result == VIP_TIMEOUT) << code_name(result);
        if (++tries == kCheap) {
            EXPECT_TRUE(in_time(start, Millis{1000})) << "a try with a timeout of 1 ms has to be cheap";
        }
    }
    End server(across());
    connect(end.nic, end.vi, server.nic, server.vi);
}

}  // namespace
}  // namespace viaduct::conformance
