// SPDX-License-Identifier: BSD-2-Clause
// The peer leaves without being killed. Everything posted is flushed at once, CONN_LOST is told late, and not
// at all if it no longer concerns a process: processes that end together must not abort each other (spec/compat
// Q14-Q17).
#include <gtest/gtest.h>

#include "fault.hpp"

namespace viaduct::fault {
namespace {

constexpr Millis kLateEnough{200};
/// Much longer than any delay of CONN_LOST.
constexpr Millis kLongAfter{700};

class PeerLeft : public testing::TestWithParam<std::tuple<VIP_RELIABILITY_LEVEL, const char*>> {
protected:
    EndOptions at_level() const {
        EndOptions chosen;
        chosen.level = std::get<0>(GetParam());
        return chosen;
    }
    Invitation by_its_way() const {
        Invitation invitation;
        invitation.more = {std::get<1>(GetParam())};
        return invitation;
    }
};

INSTANTIATE_TEST_SUITE_P(Ways, PeerLeft,
                         testing::Combine(VIADUCT_ALL_LEVELS,
                                          testing::Values("exit", "_exit", "return", "close", "disconnect",
                                                          "retire")),
                         [](const auto& test) {
                             const char* way = std::get<1>(test.param);
                             const std::string level = conformance::level_test_name(
                                 testing::TestParamInfo<VIP_RELIABILITY_LEVEL>(std::get<0>(test.param), 0));
                             return level + (*way == '_' ? "_exits_at_once" : std::string("_") + way);
                         });

TEST_P(PeerLeft, FlushesAtOnceAndTellsLate) {
    NEEDS_LEVEL(std::get<0>(GetParam()));
    Meeting meeting("leave", at_level(), by_its_way());
    End& end = *meeting.end;
    const auto told_to_go = Clock::now();
    meeting.child->go();
    ASSERT_TRUE(end.reaches(VIP_STATE_ERROR, kOneSecond));
    expect_flushed(end, meeting.posted);
    EXPECT_EQ(0u, end.errors.size()) << "told before the flush";
    ASSERT_TRUE(eventually([&] { return end.errors.size() > 0; }, kOneSecond));
    EXPECT_GE(conformance::since(told_to_go), kLateEnough);
    EXPECT_TRUE(conformance::in_time(told_to_go, kOneSecondMeasured));
    EXPECT_EQ(1u, end.errors.count(VIP_ERROR_CONN_LOST));
    EXPECT_EQ(end.vi, end.errors.first(VIP_ERROR_CONN_LOST)->ViHandle);
    EXPECT_EQ(VIP_STATE_ERROR, End::state_of(end.vi)) << "only VipDisconnect leads out of Error";
    EXPECT_EQ(VIP_SUCCESS, VipDisconnect(end.vi));
}

TEST_P(PeerLeft, TellsNothingOnceWeHaveDisconnected) {
    NEEDS_LEVEL(std::get<0>(GetParam()));
    Meeting meeting("leave", at_level(), by_its_way());
    meeting.child->go();
    ASSERT_TRUE(meeting.end->reaches(VIP_STATE_ERROR, kOneSecond));
    EXPECT_EQ(VIP_SUCCESS, VipDisconnect(meeting.end->vi));
    pass_time(kLongAfter);
    EXPECT_EQ(0u, meeting.end->errors.size());
}

TEST(PeerLeftLateNotice, IsNotToldOfAConnectionMadeSince) {
    Invitation invitation;
    invitation.receives = 0;
    invitation.more = {"disconnect"};
    Meeting meeting("leave", {}, invitation);
    End& end = *meeting.end;
    meeting.child->go();
    ASSERT_TRUE(end.reaches(VIP_STATE_ERROR, kOneSecond));
    ASSERT_EQ(VIP_SUCCESS, VipDisconnect(end.vi));
    End other;
    conformance::connect(other.nic, other.vi, end.nic, end.vi);
    pass_time(kLongAfter);
    EXPECT_EQ(0u, end.errors.size());
    EXPECT_EQ(VIP_STATE_CONNECTED, End::state_of(end.vi));
    exchange_one(other, end);
}

TEST(PeerLeftLateNotice, DiesWithTheVi) {
    Invitation invitation;
    invitation.more = {"disconnect"};
    Meeting meeting("leave", {}, invitation);
    End& end = *meeting.end;
    meeting.child->go();
    ASSERT_TRUE(end.reaches(VIP_STATE_ERROR, kOneSecond));
    ASSERT_EQ(VIP_SUCCESS, conformance::retire(end.vi));
    // A new owner of the same handle or memory must not inherit the notice.
    end.vi = end.create_vi();
    pass_time(kLongAfter);
    EXPECT_EQ(0u, end.errors.size());
}

TEST(PeerLeftLateNotice, DiesWithTheNic) {
    Invitation invitation;
    invitation.more = {"exit"};
    Meeting meeting("leave", {}, invitation);
    End& end = *meeting.end;
    meeting.child->go();
    ASSERT_TRUE(end.reaches(VIP_STATE_ERROR, kOneSecond));
    ASSERT_EQ(VIP_SUCCESS, VipCloseNic(end.nic));
    end.nic = nullptr;
    pass_time(kLongAfter);
    EXPECT_EQ(0u, end.errors.size());
}

TEST(PeerLeftLateNotice, IsNotToldToAProcessThatIsExiting) {
    Invitation invitation;
    Meeting meeting("exit-slowly", {}, invitation);
    const auto left = Clock::now();
    ASSERT_EQ(VIP_SUCCESS, VipDisconnect(meeting.end->vi));
    EXPECT_EQ("", meeting.child->everything());
    EXPECT_EQ(0, meeting.child->wait());
    EXPECT_GE(conformance::since(left), kLongAfter) << "it was lost before it could have been told";
}

}  // namespace
}  // namespace viaduct::fault
