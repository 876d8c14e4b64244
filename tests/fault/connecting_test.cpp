// SPDX-License-Identifier: BSD-2-Clause
// A process dies between the first and the last step of making a connection: the other one gets an answer
// that programs understand (spec/compat C5), its VI is Idle again, and nothing is half-open.
#include <gtest/gtest.h>

#include "fault.hpp"

namespace viaduct::fault {
namespace {

TEST(PeerKilledWhileConnecting, AServerThatDiesGivesAnAnswerThatProgramsRetry) {
    End client;
    client.receive(64);
    const std::string discriminator = conformance::unique_discriminator();
    Child server("wait-only", conformance::client_arguments(client, discriminator));
    ASSERT_EQ("ready", server.line());
    std::atomic<bool> killed{false};
    auto requester = conformance::in_background([&] {
        Address local(client.nic, discriminator);
        Address remote(client.nic, discriminator);
        VIP_VI_ATTRIBUTES attributes{};
        VIP_RETURN code = VIP_NO_MATCH;
        // Until the role waits, no program is there; after its death, the same answer is one of the good ones.
        eventually([&] {
            const bool last = killed;
            code = VipConnectRequest(client.vi, local.get(), remote.get(), 3000, &attributes);
            return code != VIP_NO_MATCH || last;
        });
        return code;
    });
    ASSERT_EQ("met", server.line());
    server.kill();
    killed = true;
    ASSERT_TRUE(ready(requester, Millis(5000)));
    const VIP_RETURN code = requester.get();
    EXPECT_TRUE(code == VIP_TIMEOUT || code == VIP_NO_MATCH || code == VIP_REJECT ||
                code == VIP_ERROR_RESOURCE)
        << code;
    EXPECT_EQ(VIP_STATE_IDLE, End::state_of(client.vi));
    VIP_DESCRIPTOR* done = nullptr;
    EXPECT_EQ(VIP_NOT_DONE, VipRecvDone(client.vi, &done)) << "a failed attempt touches no queue";
    End other;
    conformance::connect(client.nic, client.vi, other.nic, other.vi);
}

TEST(PeerKilledWhileConnecting, ARequesterThatDiesLeavesAHandleThatEndsInTimeout) {
    End server;
    const std::string discriminator = conformance::unique_discriminator();
    Child client("request-only", conformance::client_arguments(server, discriminator));
    ASSERT_EQ("ready", client.line());
    Address local(server.nic, discriminator);
    Address remote = Address::blank();
    VIP_VI_ATTRIBUTES attributes{};
    VIP_CONN_HANDLE connection = nullptr;
    ASSERT_EQ(VIP_SUCCESS, VipConnectWait(server.nic, local.get(), conformance::kLongWait, remote.get(),
                                          &attributes, &connection));
    client.kill();
    client.wait();
    const Stopwatch asked;
    EXPECT_EQ(VIP_TIMEOUT, VipConnectAccept(connection, server.vi));
    EXPECT_TRUE(conformance::in_time(asked, kOneSecond));
    EXPECT_EQ(VIP_STATE_IDLE, End::state_of(server.vi));
    EXPECT_EQ(VIP_INVALID_PARAMETER, VipConnectReject(connection)) << "the handle was used up";
}

TEST(PeerKilledWhileConnecting, ARequesterThatStandsStillIsGivenUp) {
    End server;
    const std::string discriminator = conformance::unique_discriminator();
    Child client("request-only", conformance::client_arguments(server, discriminator));
    ASSERT_EQ("ready", client.line());
    Address local(server.nic, discriminator);
    Address remote = Address::blank();
    VIP_VI_ATTRIBUTES attributes{};
    VIP_CONN_HANDLE connection = nullptr;
    ASSERT_EQ(VIP_SUCCESS, VipConnectWait(server.nic, local.get(), conformance::kLongWait, remote.get(),
                                          &attributes, &connection));
    client.stop();
    const Stopwatch asked;
    EXPECT_EQ(VIP_TIMEOUT, VipConnectAccept(connection, server.vi));
    EXPECT_TRUE(conformance::in_time(asked, Millis(10000))) << "agent.confirm_ms is 5000";
    EXPECT_EQ(VIP_STATE_IDLE, End::state_of(server.vi));
    // When it goes on it may count as connected for a moment, but not for longer.
    client.resume();
    const std::string said = client.line();
    EXPECT_NE("", said) << "it still waits for an answer";
    if (said == "connected") {
        EXPECT_EQ("lost", client.line(kOneSecond)) << "half a connection";
    }
}

// The agent holds a request without a waiter for agent.grace_ms. After that it is gone without the death of its client.
TEST(PeerKilledWhileConnecting, ARequestOfTheDeadIsNotHandedOut) {
    constexpr Millis kGrace{100};
    constexpr int kMostTurns = 20;
    End server;
    int in_time = 0;
    for (int turn = 0; turn < kMostTurns && in_time < 6; ++turn) {
        const std::string discriminator = conformance::unique_discriminator();
        Child client("request-only", conformance::client_arguments(server, discriminator));
        ASSERT_EQ("ready", client.line());
        const auto ready = Clock::now();
        pass_time(Millis(20 + 20 * (turn % 3)));  // sleeps: the request comes
        client.kill();
        client.wait();
        pass_time(Millis(20));  // sleeps: the agent handles the end of the client
        Address local(server.nic, discriminator);
        Address remote = Address::blank();
        VIP_VI_ATTRIBUTES attributes{};
        VIP_CONN_HANDLE connection = nullptr;
        if (conformance::since(ready) < kGrace) ++in_time;
        EXPECT_EQ(VIP_TIMEOUT,
                  VipConnectWait(server.nic, local.get(), 100, remote.get(), &attributes, &connection));
    }
    EXPECT_GT(in_time, 0) << "no wait began before the grace was over";
}

}  // namespace
}  // namespace viaduct::fault
