// SPDX-License-Identifier: BSD-2-Clause
// The peer process is killed (-9) while nothing moves. Within a second the survivor's VI is in Error,
// everything posted is flushed, CONN_LOST has been delivered, sleeping threads are awake, and new connections
// work (spec/architecture 7). At Unreliable the specification lets the notice be lost (spec/reliability 6.2);
// a NIC that shares a host with its peer has no excuse (spec/compat V6, Q12).
#include <gtest/gtest.h>

#include <tuple>

#include "fault.hpp"

namespace viaduct::fault {
namespace {

class PeerKilled : public conformance::AtEachLevel {};

INSTANTIATE_TEST_SUITE_P(Levels, PeerKilled, VIADUCT_ALL_LEVELS, conformance::level_test_name);

TEST_P(PeerKilled, FlushesWhatWasPostedInOrder) {
    NEEDS_LEVEL(GetParam());
    for (const Way way : {Way::kVictimAsks, Way::kVictimWaits, Way::kPeers}) {
        Invitation invitation;
        invitation.way = way;
        invitation.more = {"16", "256"};
        Meeting meeting("mute", at_level(), invitation);
        meeting.kill();
        EXPECT_TRUE(meeting.end->reaches(VIP_STATE_ERROR, kOneSecond));
        expect_flushed(*meeting.end, meeting.posted);
        expect_survivor_is_told(meeting);
    }
    expect_new_connections_work();
}

TEST_P(PeerKilled, WakesAThreadAsleepInRecvWait) {
    NEEDS_LEVEL(GetParam());
    Meeting meeting("sleep", at_level());
    auto sleeper = asleep_apart([vi = meeting.end->vi] {
        VIP_DESCRIPTOR* done = nullptr;
        const VIP_RETURN code = VipRecvWait(vi, VIP_INFINITE, &done);
        return std::pair(code, done);
    });
    meeting.kill();
    ASSERT_TRUE(ready(sleeper, kOneSecond));
    const auto [code, done] = sleeper.get();
    EXPECT_EQ(VIP_DESCRIPTOR_ERROR, code);
    ASSERT_EQ(meeting.posted.front(), done);
    EXPECT_NE(0u, done->CS.Status & VIP_STATUS_DESC_FLUSHED_ERROR);
    expect_flushed(*meeting.end, meeting.posted, 1);
    expect_survivor_is_told(meeting);
}

TEST_P(PeerKilled, WakesAThreadAsleepInCqWaitOncePerDescriptor) {
    NEEDS_LEVEL(GetParam());
    EndOptions chosen = at_level();
    chosen.recv_cq = 64;
    Meeting meeting("sleep", chosen);
    auto sleeper =
        asleep_apart([cq = meeting.end->recv_cq, wanted = meeting.end->vi, count = meeting.posted.size()] {
            std::size_t entries = 0;
            VIP_VI_HANDLE vi = nullptr;
            VIP_BOOLEAN receive = VIP_FALSE;
            while (entries < count && VipCQWait(cq, VIP_INFINITE, &vi, &receive) == VIP_SUCCESS) {
                if (vi != wanted || receive != VIP_TRUE) break;
                ++entries;
            }
            return entries;
        });
    meeting.kill();
    ASSERT_TRUE(ready(sleeper, kOneSecond));
    EXPECT_EQ(meeting.posted.size(), sleeper.get());
    expect_flushed(*meeting.end, meeting.posted);
    VIP_VI_HANDLE vi = nullptr;
    VIP_BOOLEAN receive = VIP_FALSE;
    EXPECT_EQ(VIP_NOT_DONE, VipCQDone(meeting.end->recv_cq, &vi, &receive)) << "an entry too many";
    expect_survivor_is_told(meeting);
}

TEST_P(PeerKilled, WakesAThreadAsleepInSendWait) {
    NEEDS_LEVEL(GetParam());
    constexpr std::uint32_t kBytes = 65536;
    constexpr int kMessages = 64;
    EndOptions chosen = at_level();
    chosen.memory = (kMessages + 2) * std::size_t{kBytes};
    Invitation invitation;
    invitation.memory = chosen.memory;
    invitation.more = {std::to_string(kMessages), std::to_string(kBytes)};
    Meeting meeting("mute", chosen, invitation);
    meeting.child->stop();  // nothing on its side moves a byte
    char* data = meeting.end->buffer(kBytes, 's');
    for (int i = 0; i < kMessages; ++i) meeting.end->send(data, kBytes);
    auto sleeper = asleep_apart([vi = meeting.end->vi] {
        VIP_DESCRIPTOR* done = nullptr;
        VIP_RETURN code = VIP_SUCCESS;
        while (code == VIP_SUCCESS) code = VipSendWait(vi, VIP_INFINITE, &done);
        return std::pair(code, done != nullptr);
    });
    ASSERT_FALSE(ready(sleeper, Millis(0))) << "a stopped process has taken 4 MiB";
    meeting.kill();
    ASSERT_TRUE(ready(sleeper, kOneSecond));
    EXPECT_EQ(std::pair(VIP_DESCRIPTOR_ERROR, true), sleeper.get());
    expect_survivor_is_told(meeting);
}

TEST_P(PeerKilled, CallsANotifyHandlerThatWasArmed) {
    NEEDS_LEVEL(GetParam());
    std::atomic<VIP_DESCRIPTOR*> notified{nullptr};
    Invitation invitation;
    invitation.more = {"16", "256"};
    Meeting meeting("mute", at_level(), invitation);
    const auto handler = [](VIP_PVOID context, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_DESCRIPTOR* d) {
        *static_cast<std::atomic<VIP_DESCRIPTOR*>*>(context) = d;
    };
    ASSERT_EQ(VIP_SUCCESS, VipRecvNotify(meeting.end->vi, &notified, handler));
    meeting.kill();
    EXPECT_TRUE(eventually([&] { return notified.load() == meeting.posted.front(); }, kOneSecond));
    expect_flushed(*meeting.end, meeting.posted, 1);
    expect_survivor_is_told(meeting);
}

TEST_P(PeerKilled, DeliversWhatItHadSent) {
    NEEDS_LEVEL(GetParam());
    constexpr std::uint32_t kCount = 10, kBytes = 200;
    Invitation invitation;
    invitation.more = {std::to_string(kCount), std::to_string(kBytes)};
    Meeting meeting("leave-messages", at_level(), invitation);
    meeting.child->go();
    ASSERT_EQ("sent", meeting.child->line());
    meeting.kill();
    meeting.child->wait();
    for (std::uint32_t i = 0; i < kCount; ++i) {
        const Outcome got = conformance::reap_recv(meeting.end->vi, kOneSecond);
        ASSERT_EQ(VIP_SUCCESS, got.code) << "message " << i;
        ASSERT_EQ(meeting.posted[i], got.descriptor);
        EXPECT_EQ(kBytes, got.descriptor->CS.Length);
        EXPECT_TRUE(has_pattern(static_cast<char*>(got.descriptor->DS[0].Local.Data.Address), kBytes, i));
    }
    EXPECT_TRUE(meeting.end->reaches(VIP_STATE_ERROR, kOneSecond));
    expect_flushed(*meeting.end, meeting.posted, kCount);
    expect_survivor_is_told(meeting);
}

TEST_P(PeerKilled, EndsSendsThatItNeverTook) {
    NEEDS_LEVEL(GetParam());
    constexpr std::uint32_t kBytes = 65536;
    constexpr int kMessages = 64;
    EndOptions chosen = at_level();
    chosen.memory = (kMessages + 2) * std::size_t{kBytes};
    Invitation invitation;
    invitation.memory = chosen.memory;
    invitation.more = {std::to_string(kMessages), std::to_string(kBytes)};
    Meeting meeting("mute", chosen, invitation);
    meeting.child->stop();
    char* data = meeting.end->buffer(kBytes, 's');
    std::vector<VIP_DESCRIPTOR*> sends;
    for (int i = 0; i < kMessages; ++i) sends.push_back(meeting.end->send(data, kBytes));
    pass_time(kTimeToWrite);  // sleeps: the sends get as far as they can
    meeting.kill();
    EXPECT_TRUE(meeting.end->reaches(VIP_STATE_ERROR, kOneSecond));
    const std::size_t good = expect_sends_end(*meeting.end, sends, VIP_STATUS_OP_SEND);
    EXPECT_LT(good, sends.size()) << "4 MiB went to a process that stood still: this shows nothing";
    if (reception()) {
        EXPECT_EQ(0u, good) << "nothing can have reached the memory of a process that stood still";
    }
    VIP_DESCRIPTOR* nothing = sends.front();
    EXPECT_EQ(VIP_DESCRIPTOR_ERROR, VipSendDone(meeting.end->vi, &nothing));
    EXPECT_EQ(nullptr, nothing);
    expect_flushed(*meeting.end, meeting.posted);
    expect_survivor_is_told(meeting);
}

TEST_P(PeerKilled, PostsAfterwardsAreFlushedAndTheViConnectsAgain) {
    NEEDS_LEVEL(GetParam());
    Invitation invitation;
    invitation.receives = 0;
    invitation.more = {"16", "256"};
    Meeting meeting("mute", at_level(), invitation);
    End& end = *meeting.end;
    meeting.kill();
    ASSERT_TRUE(end.reaches(VIP_STATE_ERROR, kOneSecond));
    VIP_DESCRIPTOR* receive = end.receive(64);
    const Outcome received = conformance::reap_recv(end.vi);
    EXPECT_EQ(receive, received.descriptor);
    EXPECT_NE(0u, received.status() & VIP_STATUS_DESC_FLUSHED_ERROR);
    VIP_DESCRIPTOR* send = end.send(end.buffer(64), 64);
    const Outcome sent = conformance::reap_send(end.vi);
    EXPECT_EQ(send, sent.descriptor);
    EXPECT_NE(0u, sent.status() & VIP_STATUS_DESC_FLUSHED_ERROR);
    ASSERT_EQ(VIP_SUCCESS, VipDisconnect(end.vi));
    End other(at_level());
    conformance::connect(other.nic, other.vi, end.nic, end.vi);
    exchange_one(other, end);
    exchange_one(end, other);
}

}  // namespace
}  // namespace viaduct::fault
