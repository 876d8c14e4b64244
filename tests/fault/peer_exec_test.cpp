// SPDX-License-Identifier: BSD-2-Clause
// The peer's process becomes another program (execve): alive to the kernel and to every pidfd, but all of its
// memory is another's. To its peers that is a death like any other. And a program that closes all descriptors
// behind the library's back, as daemons do: its own new files are its own.
#include <gtest/gtest.h>

#include "fault.hpp"

namespace viaduct::fault {
namespace {

class PeerExecs : public conformance::AtEachLevel {
protected:
    void become_another(Meeting& meeting) {
        meeting.killed = Clock::now();
        meeting.child->go();
    }
};

INSTANTIATE_TEST_SUITE_P(Levels, PeerExecs, VIADUCT_ALL_LEVELS, conformance::level_test_name);

TEST_P(PeerExecs, IsADeathLikeAnyOther) {
    NEEDS_LEVEL(GetParam());
    Meeting meeting("become-another", at_level());
    become_another(meeting);
    EXPECT_TRUE(meeting.end->reaches(VIP_STATE_ERROR, kOneSecond));
    expect_flushed(*meeting.end, meeting.posted);
    expect_survivor_is_told(meeting);
    expect_new_connections_work();
}

TEST_P(PeerExecs, NothingSentAfterwardsIsReportedAsDone) {
    NEEDS_LEVEL(GetParam());
    Meeting meeting("become-another", at_level());
    become_another(meeting);
    pass_time(kOneSecond);
    meeting.end->send(meeting.end->buffer(64, 's'), 64);
    EXPECT_NE(VIP_SUCCESS, conformance::reap_send(meeting.end->vi).code);
}

TEST_P(PeerExecs, ASleeperWakes) {
    NEEDS_LEVEL(GetParam());
    Meeting meeting("become-another", at_level());
    auto sleeper = apart([vi = meeting.end->vi] {
        VIP_DESCRIPTOR* done = nullptr;
        return VipRecvWait(vi, VIP_INFINITE, &done);
    });
    pass_time(kTimeToFallAsleep);
    become_another(meeting);
    ASSERT_TRUE(ready(sleeper, kOneSecond));
    EXPECT_EQ(VIP_DESCRIPTOR_ERROR, sleeper.get());
}

TEST(ClosedDescriptors, NumbersOfTheLibrarysBelongToTheProgramAfterwards) {
    Meeting meeting("close-everything");
    meeting.child->go();
    EXPECT_EQ("untouched", meeting.child->line(Millis(40000)));
    EXPECT_EQ(0, meeting.child->wait());
    const Outcome got = conformance::reap_recv(meeting.end->vi);
    EXPECT_EQ(VIP_SUCCESS, got.code) << "the connection went on";
}

}  // namespace
}  // namespace viaduct::fault
