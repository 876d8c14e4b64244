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
/// Meetings at most, where none of them shows anything.
constexpr int kMostMeetings = 20;

/// Meets a process that leaves when told to, sees that it has left, and parts from it by `part`: nothing is told of it
/// from then on. A parting so late that the notice was due before says nothing: there is another meeting.
template <typename Part>
std::unique_ptr<Meeting> expect_nothing_told_after(Part part, const EndOptions& chosen, const Invitation& invitation) {
    for (int meetings = 1;; ++meetings) {
        auto meeting = std::make_unique<Meeting>("leave", chosen, invitation);
        End& end = *meeting->end;
        const auto told_to_go = Clock::now();
        meeting->child->go();
        EXPECT_TRUE(end.reaches(VIP_STATE_ERROR, kOneSecond));
        part(end);
        const bool before_the_notice = conformance::since(told_to_go) < kLateEnough;
        pass_time(kLongAfter);  // sleeps: a notice would come meanwhile
        const std::size_t told = end.errors.size();
        if (told == 0 || before_the_notice || meetings == kMostMeetings) {
            EXPECT_EQ(0u, told);
            return meeting;
        }
    }
}

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
    for (int meetings = 1;; ++meetings) {
        Meeting meeting("leave", at_level(), by_its_way());
        End& end = *meeting.end;
        const Stopwatch told_to_go;
        meeting.child->go();
        ASSERT_TRUE(end.reaches(VIP_STATE_ERROR, kOneSecond));
        expect_flushed(end, meeting.posted);
        const bool told = end.errors.size() != 0;
        // So late that the notice was due: says nothing.
        if (told && conformance::since(told_to_go) >= kLateEnough && meetings < kMostMeetings) continue;
        EXPECT_FALSE(told) << "told before the flush";
        ASSERT_TRUE(eventually([&] { return end.errors.size() > 0; }, kOneSecond));
        EXPECT_GE(conformance::since(told_to_go), kLateEnough);
        EXPECT_TRUE(conformance::in_time(told_to_go, kOneSecondMeasured));
        EXPECT_EQ(1u, end.errors.count(VIP_ERROR_CONN_LOST));
        EXPECT_EQ(end.vi, end.errors.first(VIP_ERROR_CONN_LOST)->ViHandle);
        EXPECT_EQ(VIP_STATE_ERROR, End::state_of(end.vi)) << "only VipDisconnect leads out of Error";
        EXPECT_EQ(VIP_SUCCESS, VipDisconnect(end.vi));
        return;
    }
}

TEST_P(PeerLeft, TellsNothingOnceWeHaveDisconnected) {
    NEEDS_LEVEL(std::get<0>(GetParam()));
    expect_nothing_told_after([](End& end) { EXPECT_EQ(VIP_SUCCESS, VipDisconnect(end.vi)); }, at_level(),
                              by_its_way());
}

TEST(PeerLeftLateNotice, IsNotToldOfAConnectionMadeSince) {
    Invitation invitation;
    invitation.receives = 0;
    invitation.more = {"disconnect"};
    std::unique_ptr<End> other;
    const auto part = [&](End& end) {
        ASSERT_EQ(VIP_SUCCESS, VipDisconnect(end.vi));
        other = std::make_unique<End>();
        conformance::connect(other->nic, other->vi, end.nic, end.vi);
    };
    const auto meeting = expect_nothing_told_after(part, {}, invitation);
    ASSERT_NE(nullptr, other);
    EXPECT_EQ(VIP_STATE_CONNECTED, End::state_of(meeting->end->vi));
    exchange_one(*other, *meeting->end);
}

TEST(PeerLeftLateNotice, DiesWithTheVi) {
    Invitation invitation;
    invitation.more = {"disconnect"};
    const auto part = [](End& end) {
        ASSERT_EQ(VIP_SUCCESS, conformance::retire(end.vi));
        // A new owner of the same handle or memory must not inherit the notice.
        end.vi = end.create_vi();
    };
    expect_nothing_told_after(part, {}, invitation);
}

TEST(PeerLeftLateNotice, DiesWithTheNic) {
    Invitation invitation;
    invitation.more = {"exit"};
    const auto part = [](End& end) {
        ASSERT_EQ(VIP_SUCCESS, VipCloseNic(end.nic));
        end.nic = nullptr;
    };
    expect_nothing_told_after(part, {}, invitation);
}

TEST(PeerLeftLateNotice, IsNotToldToAProcessThatIsExiting) {
    for (int meetings = 1;; ++meetings) {
        Meeting meeting("exit-slowly");
        const auto left = Clock::now();
        ASSERT_EQ(VIP_SUCCESS, VipDisconnect(meeting.end->vi));
        const std::string said = meeting.child->everything();
        EXPECT_EQ(0, meeting.child->wait());
        EXPECT_GE(conformance::since(left), kLongAfter) << "it was lost before it could have been told";
        // One that came late to its exit may have been told before that.
        const auto has = [&](const char* line) { return said.find(line) != std::string::npos; };
        if (has("told") && has("late") && meetings < kMostMeetings) continue;
        EXPECT_TRUE(said.empty() || said == "late\n") << said;
        return;
    }
}

}  // namespace
}  // namespace viaduct::fault
