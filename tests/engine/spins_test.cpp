// SPDX-License-Identifier: BSD-2-Clause
// How long a rank looks before it gives way, learnt from how its waits ended.
#include "mpi-adi/engine/spins.hpp"

#include <gtest/gtest.h>

namespace viaduct::mpi {
namespace {

void disappoint(Spins& spins, unsigned times) {
    for (unsigned i = 0; i < times; i++) spins.in_vain();
}

TEST(SpinsTest, BeginsWithTheMost) { EXPECT_EQ(Spins().limit(), Spins::kMost); }

TEST(SpinsTest, WaitsInVainShortenItDownToTheLeast) {
    Spins spins;
    spins.in_vain();
    EXPECT_EQ(spins.limit(), Spins::kMost / 2);
    disappoint(spins, 10);
    EXPECT_EQ(spins.limit(), Spins::kLeast);
}

TEST(SpinsTest, ARewardMakesRoomForWaitsFourTimesAsLong) {
    Spins spins;
    disappoint(spins, 10);
    spins.rewarded(5);
    EXPECT_EQ(spins.limit(), 20U);
    spins.rewarded(Spins::kMost - 1);
    EXPECT_EQ(spins.limit(), Spins::kMost);
}

TEST(SpinsTest, AQuickRewardTakesNothingAway) {
    Spins spins;
    spins.rewarded(1);
    EXPECT_EQ(spins.limit(), Spins::kMost);
}

// Answers that take longer than the least are not missed for ever.
TEST(SpinsTest, AfterManyWaitsInVainOneLooksForLongAgain) {
    Spins spins;
    disappoint(spins, Spins::kBetweenTrials - 1);
    EXPECT_EQ(spins.limit(), Spins::kLeast);
    spins.in_vain();
    EXPECT_EQ(spins.limit(), Spins::kMost);
    // Each trial costs a few longer waits, and then as many short ones pass before the next.
    disappoint(spins, Spins::kBetweenTrials - 1);
    EXPECT_EQ(spins.limit(), Spins::kLeast);
}

}  // namespace
}  // namespace viaduct::mpi
