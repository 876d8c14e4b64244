// SPDX-License-Identifier: BSD-2-Clause
// The peer, or the agent, stands still (SIGSTOP): it is not dead, so connections stay, and no call that has a
// timeout waits longer than that.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>

#include "fault.hpp"

namespace viaduct::fault {
namespace {

/// No call may wait for a process that does not move for longer than this.
constexpr Millis kBounded{3000};

/// Our memory is being written by a peer: where and how much.
struct Written {
    Written() : meeting("initiator", options(), invitation()) {
        target = meeting.end->buffer(kBytes);
        send_window(*meeting.end, {reinterpret_cast<std::uint64_t>(target), meeting.end->region, kBytes});
        const volatile char* last = target + kBytes - 1;
        require(eventually([&] { return *last == 'w'; }), "no RDMA write arrived");
    }
    static EndOptions options() {
        EndOptions chosen;
        chosen.memory = 4 << 20;
        return chosen;
    }
    static Invitation invitation() {
        Invitation made;
        made.memory = 4 << 20;
        made.more = {"write"};
        return made;
    }

    static constexpr std::uint32_t kBytes = 1 << 20;
    Meeting meeting;
    char* target = nullptr;
};

TEST(PeerStopped, WaitsKeepTheirTimeoutsAndDisconnectIsBounded) {
    Written by_peer;
    End& end = *by_peer.meeting.end;
    by_peer.meeting.child->stop();
    const Stopwatch begun;
    VIP_DESCRIPTOR* done = nullptr;
    EXPECT_EQ(VIP_TIMEOUT, VipRecvWait(end.vi, 100, &done));
    EXPECT_GE(conformance::since(begun), Millis(99));
    EXPECT_TRUE(conformance::in_time(begun, Millis(1000)));
    EXPECT_EQ(VIP_STATE_CONNECTED, End::state_of(end.vi));
    EXPECT_EQ(0u, end.errors.size());
    const Stopwatch parting;
    EXPECT_EQ(VIP_SUCCESS, VipDisconnect(end.vi));
    EXPECT_TRUE(conformance::in_time(parting, kBounded));
}

TEST(PeerStopped, WritesNothingMoreAfterOurDisconnectWhenItGoesOn) {
    for (int round = 0; round < 10; ++round) {
        Written by_peer;
        by_peer.meeting.child->stop();
        ASSERT_EQ(VIP_SUCCESS, VipDisconnect(by_peer.meeting.end->vi));
        std::memset(by_peer.target, 0, Written::kBytes);
        by_peer.meeting.child->resume();
        pass_time(kTimeToWrite);  // sleeps: a write would come meanwhile
        std::size_t written = 0;
        for (std::uint32_t i = 0; i < Written::kBytes; ++i) written += by_peer.target[i] != 0 ? 1 : 0;
        EXPECT_EQ(0u, written) << "bytes written after VipDisconnect has returned (spec/states 3 rule 4)";
    }
}

TEST(PeerStopped, DeregistrationIsBounded) {
    Written by_peer;
    End& end = *by_peer.meeting.end;
    by_peer.meeting.child->stop();
    const Stopwatch begun;
    EXPECT_EQ(VIP_SUCCESS, VipDeregisterMem(end.nic, end.memory, end.region));
    EXPECT_TRUE(conformance::in_time(begun, kBounded));
}

TEST(PeerStopped, GoesOnWhereItStoodStill) {
    constexpr std::uint32_t kBytes = 3000;
    EndOptions chosen;
    chosen.memory = Stream::memory_for(kBytes);
    Invitation invitation;
    invitation.receives = 0;
    invitation.memory = chosen.memory;
    invitation.more = {std::to_string(kBytes)};
    Meeting meeting("stream", chosen, invitation);
    Stream in(*meeting.end, kBytes);
    in.begin_receiving();
    meeting.child->go();
    for (int pause = 0; pause < 5; ++pause) {
        const std::uint32_t wanted = in.received() + 300;
        ASSERT_TRUE(
            eventually([&] { return runs_until(in, &Stream::step_receiver, [&] { return in.received() > wanted; }); }));
        ASSERT_GT(in.received(), wanted);
        meeting.child->stop();
        conformance::never([&] { return !in.step_receiver(); }, Millis(150));
        meeting.child->resume();
    }
    EXPECT_FALSE(in.damaged());
    EXPECT_EQ(VIP_STATE_CONNECTED, End::state_of(meeting.end->vi));
    EXPECT_EQ(0u, meeting.end->errors.size());
}

TEST(PeerStopped, ThenKilledIsNoticedLikeAnyOther) {
    Written by_peer;
    by_peer.meeting.child->stop();
    pass_time(Millis(50));  // sleeps: the stop
    by_peer.meeting.kill();
    expect_survivor_is_told(by_peer.meeting);
}

TEST(AgentStopped, DataGoesOn) {
    constexpr std::uint32_t kBytes = 500;
    Invitation invitation;
    invitation.receives = 0;
    invitation.more = {std::to_string(kBytes)};
    Meeting meeting("stream", {}, invitation);
    Stream in(*meeting.end, kBytes);
    in.begin_receiving();
    meeting.child->go();
    const StoppedAgent agent;
    ASSERT_TRUE(agent.stopped());
    EXPECT_TRUE(
        eventually([&] { return runs_until(in, &Stream::step_receiver, [&] { return in.received() > 3000; }); }));
    EXPECT_GT(in.received(), 3000u);
    EXPECT_FALSE(in.damaged());
    EXPECT_EQ(0u, meeting.end->errors.size());
}

TEST(AgentStopped, ThePeersDeathIsNoticed) {
    Invitation invitation;
    invitation.more = {"16", "256"};
    Meeting meeting("mute", {}, invitation);
    const StoppedAgent agent;
    ASSERT_TRUE(agent.stopped());
    meeting.kill();
    EXPECT_TRUE(meeting.end->reaches(VIP_STATE_ERROR, kOneSecond));
    expect_flushed(*meeting.end, meeting.posted);
    expect_survivor_is_told(meeting);
}

/// Processor time that this process uses while it does nothing.
Millis idle_cost(Millis while_idle) {
    const auto used = [] {
        rusage usage{};
        getrusage(RUSAGE_SELF, &usage);
        return Millis((usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
                      (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000);
    };
    const Millis before = used();
    pass_time(while_idle);  // sleeps: processor time is measured meanwhile
    return used() - before;
}

TEST(AgentStopped, ThePeersDeathKeepsNoThreadBusy) {
    Invitation invitation;
    invitation.more = {"16", "256"};
    Meeting meeting("mute", {}, invitation);
    const StoppedAgent agent;  // which goes on holding what tells of the death
    ASSERT_TRUE(agent.stopped());
    meeting.kill();
    expect_survivor_is_told(meeting);
    EXPECT_LE(idle_cost(Millis(500)), Millis(50));
}

TEST(AgentStopped, CallsThatNeedItKeepTheirTimeouts) {
    constexpr VIP_ULONG kTimeout = 300;
    End one, two;
    const std::string discriminator = conformance::unique_discriminator();
    Address local(one.nic, discriminator), remote(two.nic, discriminator);
    VIP_VI_ATTRIBUTES attributes{};
    {
        const StoppedAgent agent;
        ASSERT_TRUE(agent.stopped());
        Stopwatch begun;
        const VIP_RETURN requested =
            VipConnectRequest(one.vi, local.get(), remote.get(), kTimeout, &attributes);
        EXPECT_TRUE(requested == VIP_TIMEOUT || requested == VIP_NO_MATCH || requested == VIP_ERROR_RESOURCE)
            << requested;
        EXPECT_TRUE(conformance::in_time(begun, kBounded));
        EXPECT_EQ(VIP_STATE_IDLE, End::state_of(one.vi));
        begun = Stopwatch();
        Address from = Address::blank();
        VIP_CONN_HANDLE connection = nullptr;
        EXPECT_EQ(VIP_TIMEOUT,
                  VipConnectWait(two.nic, remote.get(), kTimeout, from.get(), &attributes, &connection));
        EXPECT_TRUE(conformance::in_time(begun, kBounded));
        begun = Stopwatch();
        ASSERT_EQ(VIP_SUCCESS, VipConnectPeerRequest(one.vi, local.get(), remote.get(), kTimeout));
        EXPECT_EQ(VIP_TIMEOUT, VipConnectPeerWait(one.vi, &attributes));
        EXPECT_TRUE(conformance::in_time(begun, kBounded));
    }
    conformance::connect(one.nic, one.vi, two.nic, two.vi);
    exchange_one(one, two);
}

TEST(AgentStopped, EndingThingsIsBounded) {
    auto one = std::make_unique<End>();
    auto two = std::make_unique<End>();
    conformance::connect(one->nic, one->vi, two->nic, two->vi);
    const StoppedAgent agent;
    ASSERT_TRUE(agent.stopped());
    const Stopwatch begun;
    EXPECT_EQ(VIP_SUCCESS, conformance::retire(one->vi));
    one->vi = nullptr;
    EXPECT_EQ(VIP_SUCCESS, VipDeregisterMem(one->nic, one->memory, one->region));
    one.reset();
    two.reset();
    EXPECT_TRUE(conformance::in_time(begun, kBounded));
}

}  // namespace
}  // namespace viaduct::fault
