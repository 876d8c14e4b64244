// SPDX-License-Identifier: BSD-2-Clause
// Nothing stays behind: counted in this process, in the agent and on the host, after orderly ends and after
// kills.
#include <gtest/gtest.h>

#include "fault.hpp"

namespace viaduct::fault {
namespace {

void kill_some_peers(int rounds) {
    for (int i = 0; i < rounds; ++i) {
        Invitation invitation;
        invitation.way = static_cast<Way>(i % 3);
        invitation.more = {"16", "256"};
        Meeting meeting("mute", {}, invitation);
        meeting.kill();
        ASSERT_TRUE(meeting.end->reaches(VIP_STATE_ERROR));
    }
}

void expect_nothing_more_than(const Census& before) {
    Census now;
    EXPECT_TRUE(eventually([&] { return (now = Census::take()).within(before); }, Millis(5000)))
        << "before: " << before.text() << "\nafter:  " << now.text();
}

TEST(Leftovers, KilledPeersLeaveNothing) {
    const End keeps_the_agent;
    kill_some_peers(3);  // whatever is made once per process is there now
    const Census before = Census::settled();
    ASSERT_GT(before.agent_descriptors, 0u);
    kill_some_peers(9);
    expect_nothing_more_than(before);
}

TEST(Leftovers, PeersKilledInTheMiddleOfLargeMessagesLeaveNothing) {
    constexpr std::uint32_t kBytes = 1 << 20;
    const End keeps_the_agent;
    const auto once = [&] {
        EndOptions chosen;
        chosen.memory = Volley::memory_for(kBytes);
        Invitation invitation;
        invitation.receives = 0;
        invitation.memory = chosen.memory;
        invitation.more = {std::to_string(kBytes)};
        Meeting meeting("volley", chosen, invitation);
        Volley volley(*meeting.end, kBytes);
        volley.begin();
        meeting.child->go();
        volley.serve();
        ASSERT_TRUE(
            eventually([&] { return runs_until(volley, &Volley::step, [&] { return volley.received() > 5; }); }));
        meeting.kill();
        EXPECT_TRUE(eventually([&] { return !volley.step(); }, kOneSecond));
    };
    once();
    const Census before = Census::settled();
    for (int i = 0; i < 5; ++i) once();
    expect_nothing_more_than(before);
}

TEST(Leftovers, KilledAgentsLeaveNothing) {
    const End keeps_the_agent;
    ASSERT_TRUE(kill_agent());
    expect_new_connections_work();
    const Census before = Census::settled();
    for (int i = 0; i < 5; ++i) {
        ASSERT_TRUE(kill_agent());
        expect_new_connections_work();
    }
    expect_nothing_more_than(before);
}

TEST(Leftovers, ConnectionsMadeAndEndedLeaveNothing) {
    End client, server;
    const auto once = [&](bool client_first) {
        conformance::connect(client.nic, client.vi, server.nic, server.vi);
        ASSERT_EQ(VIP_SUCCESS, VipDisconnect(client_first ? client.vi : server.vi));
        ASSERT_EQ(VIP_SUCCESS, VipDisconnect(client_first ? server.vi : client.vi));
    };
    for (int i = 0; i < 2; ++i) once(i == 0);
    const Census before = Census::take();
    for (int i = 0; i < 200; ++i) once(i % 2 == 0);
    expect_nothing_more_than(before);
}

TEST(FailedRequests, LeaveNothing) {
    End client;
    Address local(client.nic, conformance::unique_discriminator());
    Address unused(client.nic, conformance::unique_discriminator());
    VIP_VI_ATTRIBUTES attributes{};
    const auto once = [&] {
        ASSERT_EQ(VIP_NO_MATCH,
                  VipConnectRequest(client.vi, local.get(), unused.get(), conformance::kLongWait, &attributes));
    };
    once();
    const Census before = Census::take();
    for (int i = 0; i < 20; ++i) once();
    expect_nothing_more_than(before);
}

TEST(Leftovers, NicsOpenedAndClosedLeaveNothing) {
    const End keeps_the_agent;
    { Meeting meeting("echo"); }
    for (int i = 0; i < 2; ++i) End end;
    const Census before = Census::settled();
    for (int i = 0; i < 50; ++i) End end;
    expect_nothing_more_than(before);
}

}  // namespace
}  // namespace viaduct::fault
