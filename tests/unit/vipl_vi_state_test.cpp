// SPDX-License-Identifier: BSD-2-Clause
// The state machine of a VI against spec/states 3.
#include "vipl/vi_state.hpp"

#include <gtest/gtest.h>

#include <array>

namespace viaduct::vipl {
namespace {

constexpr std::array kStates = {VIP_STATE_IDLE, VIP_STATE_CONNECTED, VIP_STATE_CONNECT_PENDING,
                                VIP_STATE_ERROR};

struct Step {
    VIP_VI_STATE from;
    ViEvent event;
    std::optional<VIP_VI_STATE> to;
};

constexpr auto kNone = std::nullopt;

const Step kSteps[] = {
    {VIP_STATE_IDLE, ViEvent::attempt_begins, VIP_STATE_CONNECT_PENDING},
    {VIP_STATE_CONNECT_PENDING, ViEvent::attempt_begins, kNone},
    {VIP_STATE_CONNECTED, ViEvent::attempt_begins, kNone},
    {VIP_STATE_ERROR, ViEvent::attempt_begins, kNone},

    {VIP_STATE_IDLE, ViEvent::attempt_fails, kNone},
    {VIP_STATE_CONNECT_PENDING, ViEvent::attempt_fails, VIP_STATE_IDLE},
    {VIP_STATE_CONNECTED, ViEvent::attempt_fails, kNone},
    {VIP_STATE_ERROR, ViEvent::attempt_fails, kNone},

    {VIP_STATE_IDLE, ViEvent::attempt_succeeds, kNone},
    {VIP_STATE_CONNECT_PENDING, ViEvent::attempt_succeeds, VIP_STATE_CONNECTED},
    {VIP_STATE_CONNECTED, ViEvent::attempt_succeeds, kNone},
    {VIP_STATE_ERROR, ViEvent::attempt_succeeds, kNone},

    {VIP_STATE_IDLE, ViEvent::connection_breaks, kNone},
    {VIP_STATE_CONNECT_PENDING, ViEvent::connection_breaks, kNone},
    {VIP_STATE_CONNECTED, ViEvent::connection_breaks, VIP_STATE_ERROR},
    {VIP_STATE_ERROR, ViEvent::connection_breaks, kNone},

    {VIP_STATE_IDLE, ViEvent::program_errs, VIP_STATE_ERROR},
    {VIP_STATE_CONNECT_PENDING, ViEvent::program_errs, kNone},
    {VIP_STATE_CONNECTED, ViEvent::program_errs, VIP_STATE_ERROR},
    {VIP_STATE_ERROR, ViEvent::program_errs, kNone},
};

TEST(ViStateTest, FollowsTheTable) {
    for (const Step& step : kSteps) {
        EXPECT_EQ(next_state(step.from, step.event), step.to)
            << "state " << step.from << ", event " << static_cast<int>(step.event);
    }
}

TEST(ViStateTest, DisconnectLeadsToIdleFromEverywhere) {
    for (const VIP_VI_STATE state : kStates)
        EXPECT_EQ(next_state(state, ViEvent::disconnect), VIP_STATE_IDLE);
}

TEST(ViStateTest, OnlyAConnectedViHandsSendsOn) {
    for (const VIP_VI_STATE state : kStates)
        EXPECT_EQ(post_rule(state, false) == PostRule::hand_on, state == VIP_STATE_CONNECTED);
}

TEST(ViStateTest, ReceivesAreHandedOnFromTheAttemptToConnect) {
    EXPECT_EQ(post_rule(VIP_STATE_IDLE, true), PostRule::hold);
    EXPECT_EQ(post_rule(VIP_STATE_CONNECT_PENDING, true), PostRule::hand_on);
    EXPECT_EQ(post_rule(VIP_STATE_CONNECTED, true), PostRule::hand_on);
}

TEST(ViStateTest, SendsAreFlushedBeforeConnecting) {
    EXPECT_EQ(post_rule(VIP_STATE_IDLE, false), PostRule::flush);
    EXPECT_EQ(post_rule(VIP_STATE_CONNECT_PENDING, false), PostRule::flush);
}

TEST(ViStateTest, EverythingIsFlushedInError) {
    EXPECT_EQ(post_rule(VIP_STATE_ERROR, false), PostRule::flush);
    EXPECT_EQ(post_rule(VIP_STATE_ERROR, true), PostRule::flush);
}

TEST(ViStateTest, OnlyAnIdleViMayBeReshaped) {
    for (const VIP_VI_STATE state : kStates) EXPECT_EQ(may_reshape(state), state == VIP_STATE_IDLE);
}

}  // namespace
}  // namespace viaduct::vipl
