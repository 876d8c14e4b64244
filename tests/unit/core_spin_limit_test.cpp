// SPDX-License-Identifier: BSD-2-Clause
// How long a wait looks before it gives way, learnt from how its waits ended.
#include "core/wait/spin_limit.hpp"

#include <gtest/gtest.h>

namespace viaduct {
namespace {

void disappoint(SpinLimit& spin, unsigned times) {
    for (unsigned i = 0; i < times; i++) spin.expired();
}

TEST(SpinLimitTest, BeginsWithTheMost) { EXPECT_EQ(SpinLimit().limit(), SpinLimit::kMost); }

TEST(SpinLimitTest, FruitlessWaitsShortenItDownToTheLeast) {
    SpinLimit spin;
    spin.expired();
    EXPECT_EQ(spin.limit(), SpinLimit::kMost / 2);
    disappoint(spin, 10);
    EXPECT_EQ(spin.limit(), SpinLimit::kLeast);
}

TEST(SpinLimitTest, ARewardMakesRoomForWaitsFourTimesAsLong) {
    SpinLimit spin;
    disappoint(spin, 10);
    spin.rewarded(5);
    EXPECT_EQ(spin.limit(), 20U);
    spin.rewarded(SpinLimit::kMost - 1);
    EXPECT_EQ(spin.limit(), SpinLimit::kMost);
}

TEST(SpinLimitTest, AQuickRewardTakesNothingAway) {
    SpinLimit spin;
    spin.rewarded(1);
    EXPECT_EQ(spin.limit(), SpinLimit::kMost);
}

// Answers that take longer than the least are not missed for ever.
TEST(SpinLimitTest, AfterManyFruitlessWaitsOneLooksForLongAgain) {
    SpinLimit spin;
    disappoint(spin, SpinLimit::kBetweenTrials - 1);
    EXPECT_EQ(spin.limit(), SpinLimit::kLeast);
    spin.expired();
    EXPECT_EQ(spin.limit(), SpinLimit::kMost);
    // Each trial costs a few longer waits, and then as many short ones pass before the next.
    disappoint(spin, SpinLimit::kBetweenTrials - 1);
    EXPECT_EQ(spin.limit(), SpinLimit::kLeast);
}

TEST(SpinLimitTest, SwitchedOffItIsTheMost) {
    SpinLimit spin;
    disappoint(spin, 3);
    spin.switch_off();
    disappoint(spin, 3);
    EXPECT_EQ(spin.limit(), SpinLimit::kMost);
}

}  // namespace
}  // namespace viaduct
