// SPDX-License-Identifier: BSD-2-Clause
// The peer is killed (-9) in the middle of traffic: streams of small messages, 1 MiB messages in both
// directions, RDMA in either role. What arrives is whole, what is left is flushed, no process hangs.
#include <gtest/gtest.h>

#include <cstring>

#include "fault.hpp"

namespace viaduct::fault {
namespace {

class PeerKilledMidway : public conformance::AtEachLevel {};

INSTANTIATE_TEST_SUITE_P(Levels, PeerKilledMidway, VIADUCT_ALL_LEVELS, conformance::level_test_name);

TEST_P(PeerKilledMidway, OfAStreamLeavesOnlyWholeMessages) {
    NEEDS_LEVEL(GetParam());
    for (const std::uint32_t bytes : {8u, 1000u, 9000u}) {
        EndOptions chosen = at_level();
        chosen.memory = Stream::memory_for(bytes);
        Invitation invitation;
        invitation.receives = 0;
        invitation.memory = chosen.memory;
        invitation.more = {std::to_string(bytes)};
        Meeting meeting("stream", chosen, invitation);
        Stream in(*meeting.end, bytes);
        in.begin_receiving();
        meeting.child->go();
        ASSERT_TRUE(
            eventually([&] { return runs_until(in, &Stream::step_receiver, [&] { return in.received() > 500; }); }));
        ASSERT_GT(in.received(), 500u);
        meeting.kill();
        EXPECT_TRUE(eventually([&] { return !in.step_receiver(); }, kOneSecond));
        EXPECT_FALSE(in.damaged());
        expect_survivor_is_told(meeting);
    }
}

TEST_P(PeerKilledMidway, OfLargeMessagesInBothDirections) {
    NEEDS_LEVEL(GetParam());
    constexpr std::uint32_t kBytes = 1 << 20;
    for (const Way way : {Way::kVictimAsks, Way::kVictimWaits}) {
        EndOptions chosen = at_level();
        chosen.memory = Volley::memory_for(kBytes);
        Invitation invitation;
        invitation.way = way;
        invitation.receives = 0;
        invitation.memory = chosen.memory;
        invitation.more = {std::to_string(kBytes)};
        Meeting meeting("volley", chosen, invitation);
        Volley volley(*meeting.end, kBytes);
        volley.begin();
        meeting.child->go();
        volley.serve();
        ASSERT_TRUE(
            eventually([&] { return runs_until(volley, &Volley::step, [&] { return volley.received() > 20; }); }));
        ASSERT_GT(volley.received(), 20u);
        meeting.kill();
        EXPECT_TRUE(eventually([&] { return !volley.step(); }, kOneSecond));
        EXPECT_FALSE(volley.damaged());
        expect_survivor_is_told(meeting);
    }
}

TEST_P(PeerKilledMidway, OfWritingIntoOurMemoryLeavesItAlone) {
    NEEDS_LEVEL(GetParam());
    for (const std::uint32_t bytes : {64u, 65536u, 1u << 20}) {
        EndOptions chosen = at_level();
        chosen.memory = 4 << 20;
        Invitation invitation;
        invitation.memory = chosen.memory;
        invitation.more = {"write"};
        Meeting meeting("initiator", chosen, invitation);
        char* target = meeting.end->buffer(bytes);
        send_window(*meeting.end, {reinterpret_cast<std::uint64_t>(target), meeting.end->region, bytes});
        const volatile char* last = target + bytes - 1;
        // Without a call of ours: no progress may depend on the target (spec/compat T10).
        ASSERT_TRUE(eventually([&] { return *last == 'w'; }))
            << "no RDMA write of " << bytes << " bytes arrived";
        meeting.kill();
        expect_survivor_is_told(meeting);
        std::memset(target, 0, bytes);  // after VipDisconnect no peer writes any more
        pass_time(kTimeToWrite);  // sleeps: a write would come meanwhile
        for (std::uint32_t i = 0; i < bytes; ++i) ASSERT_EQ(0, target[i]) << "byte " << i;
    }
}

class PeerKilledMidRead : public conformance::AtEachLevel {};

INSTANTIATE_TEST_SUITE_P(Levels, PeerKilledMidRead, VIADUCT_RELIABLE_LEVELS, conformance::level_test_name);

TEST_P(PeerKilledMidRead, OfOurMemory) {
    NEEDS_RDMA_READ(GetParam());
    for (const std::uint32_t bytes : {64u, 1u << 20}) {
        EndOptions chosen = at_level();
        chosen.memory = 4 << 20;
        Invitation invitation;
        invitation.memory = chosen.memory;
        invitation.more = {"read"};
        Meeting meeting("initiator", chosen, invitation);
        char* source = meeting.end->buffer(bytes, 'r');
        send_window(*meeting.end, {reinterpret_cast<std::uint64_t>(source), meeting.end->region, bytes});
        ASSERT_EQ("under way", meeting.child->line());
        meeting.kill();
        expect_survivor_is_told(meeting);
        EXPECT_EQ(VIP_SUCCESS, VipDeregisterMem(meeting.end->nic, meeting.end->memory, meeting.end->region));
    }
}

/// Our RDMA into or out of the memory of a process that dies.
void expect_our_rdma_ends(const EndOptions& level, bool read) {
    constexpr std::uint32_t kBytes = 1 << 20;
    constexpr std::size_t kUnderWay = 4;
    EndOptions chosen = level;
    chosen.memory = 8 << 20;
    Invitation invitation;
    invitation.memory = chosen.memory;
    invitation.more = {std::to_string(kBytes)};
    Meeting meeting("target", chosen, invitation);
    End& end = *meeting.end;
    const Window window = receive_window(end, meeting.posted.front());
    const conformance::Target target{reinterpret_cast<void*>(window.address), window.handle};
    const auto control = static_cast<VIP_UINT16>(read ? VIP_CONTROL_OP_RDMAREAD : VIP_CONTROL_OP_RDMAWRITE);
    std::vector<VIP_DESCRIPTOR*> slots;
    std::vector<char*> data;
    const auto post = [&](std::size_t i) {
        conformance::fill(slots[i], control, {end.piece(data[i], kBytes)}, target);
        require(end.post_send(slots[i]), "VipPostSend");
    };
    for (std::size_t i = 0; i < kUnderWay; ++i) {
        slots.push_back(end.descriptor());
        data.push_back(end.buffer(kBytes, 'x'));
        post(i);
    }
    std::size_t next = 0;  // the slot that completes next
    const auto turn = [&] {
        const Outcome done = conformance::reap_send(end.vi, kOneSecond);
        EXPECT_EQ(slots[next], done.descriptor);
        if (done.code != VIP_SUCCESS) return false;
        if (read) {
            EXPECT_EQ(std::string(kBytes, 'r') == std::string(data[next], kBytes), true) << "a damaged read";
        }
        post(next);
        next = (next + 1) % kUnderWay;
        return true;
    };
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(turn());
    meeting.kill();
    while (turn())
        ASSERT_TRUE(conformance::in_time(meeting.killed, kOneSecondMeasured)) << "RDMA into a dead process goes on";
    next = (next + 1) % kUnderWay;
    for (std::size_t i = 1; i < kUnderWay; ++i, next = (next + 1) % kUnderWay) {
        const Outcome done = conformance::reap_send(end.vi, kOneSecond);
        EXPECT_EQ(slots[next], done.descriptor);
        EXPECT_NE(0u, done.errors() & (VIP_STATUS_DESC_FLUSHED_ERROR | VIP_STATUS_TRANSPORT_ERROR));
        EXPECT_EQ(0u, done.errors() & VIP_STATUS_RDMA_PROT_ERROR) << "a dead peer is no refusal";
    }
    expect_flushed(end, meeting.posted, 1);
    expect_survivor_is_told(meeting);
}

TEST_P(PeerKilledMidway, OfOurWritesIntoItsMemory) {
    NEEDS_LEVEL(GetParam());
    expect_our_rdma_ends(at_level(), false);
}

TEST_P(PeerKilledMidRead, OfItsMemory) {
    NEEDS_RDMA_READ(GetParam());
    expect_our_rdma_ends(at_level(), true);
}

TEST(PeerKilledAtRandom, NothingIsEverDamagedOrLost) {
    std::uint32_t seed = 20031;
    for (int round = 0; round < 24; ++round) {
        seed = seed * 1664525u + 1013904223u;
        const std::uint32_t bytes = 1 + (seed >> 8) % 20000;
        EndOptions chosen;
        chosen.memory = Stream::memory_for(bytes);
        const bool we_send = (seed & (1u << 20)) != 0;
        Invitation invitation;
        invitation.receives = 0;
        invitation.memory = chosen.memory;
        invitation.way = static_cast<Way>(round % 3);
        invitation.more = {std::to_string(bytes)};
        Meeting meeting(we_send ? "sink" : "stream", chosen, invitation);
        Stream stream(*meeting.end, bytes);
        we_send ? stream.begin_sending() : stream.begin_receiving();
        meeting.child->go();
        const auto killing_time = Clock::now() + std::chrono::microseconds(seed % 30000);
        bool killed = false;
        const bool ended = eventually(
            [&] {
                return runs_until(stream, we_send ? &Stream::step_sender : &Stream::step_receiver, [&] {
                    if (!killed && Clock::now() >= killing_time) {
                        meeting.kill();
                        killed = true;
                    }
                    return false;
                });
            },
            Millis(3000));
        EXPECT_TRUE(ended && killed) << "round " << round << ", " << bytes << " bytes";
        EXPECT_FALSE(stream.damaged()) << "round " << round << ", " << bytes << " bytes";
        expect_survivor_is_told(meeting);
    }
    expect_new_connections_work();
}

}  // namespace
}  // namespace viaduct::fault
