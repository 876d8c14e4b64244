// SPDX-License-Identifier: BSD-2-Clause
// When a wait looks for the first time, learnt from how long waits took either way.
#include "core/wait/poll_delay.hpp"

#include <gtest/gtest.h>

namespace viaduct {
namespace {

int64_t elapsed = 0;

class PollDelayTest : public testing::Test {
protected:
    PollDelayTest() { elapsed = 0; }
    // So many waits that take these times; how many of them looked later.
    unsigned wait(unsigned waits, int64_t at_once, int64_t later) {
        unsigned late = 0;
        for (unsigned i = 0; i < waits; i++) {
            const bool is_late = delay.is_late();
            late += is_late ? 1 : 0;
            elapsed += is_late ? later : at_once;
        }
        return late;
    }
    static constexpr unsigned kTrial = 2 * PollDelay::kEachWay * PollDelay::kInRow;
    PollDelay delay{[] { return elapsed; }};
};

TEST_F(PollDelayTest, BeginsByLookingAtOnce) { EXPECT_EQ(wait(PollDelay::kBeforeFirst, 100, 50), 0U); }

TEST_F(PollDelayTest, ATrialIsHalfEachWay) {
    wait(PollDelay::kBeforeFirst, 100, 50);
    EXPECT_EQ(wait(PollDelay::kInRow, 100, 50), 0U);
    EXPECT_EQ(wait(PollDelay::kInRow, 100, 50), PollDelay::kInRow);
    EXPECT_EQ(wait(kTrial - 2 * PollDelay::kInRow, 100, 50), (PollDelay::kEachWay - 1) * PollDelay::kInRow);
}

TEST_F(PollDelayTest, LaterWhereThatIsQuicker) {
    wait(PollDelay::kBeforeFirst + kTrial, 100, 99);
    EXPECT_EQ(wait(PollDelay::kBetweenTrials, 100, 99), PollDelay::kBetweenTrials);
}

TEST_F(PollDelayTest, AtOnceWhereItIsNot) {
    wait(PollDelay::kBeforeFirst + kTrial, 100, 100);
    EXPECT_EQ(wait(PollDelay::kBetweenTrials, 100, 100), 0U);
}

TEST_F(PollDelayTest, FindsOutWhenItHasChanged) {
    wait(PollDelay::kBeforeFirst + kTrial, 100, 80);
    wait(PollDelay::kBetweenTrials + kTrial, 10, 60);
    EXPECT_EQ(wait(PollDelay::kBetweenTrials, 10, 60), 0U);
    wait(kTrial, 100, 80);
    EXPECT_EQ(wait(PollDelay::kBetweenTrials, 100, 80), PollDelay::kBetweenTrials);
}

// Interrupts in all rows but one of each way decide nothing.
TEST_F(PollDelayTest, TheQuickestRowCounts) {
    wait(PollDelay::kBeforeFirst, 100, 100);
    wait(2 * PollDelay::kInRow, 100, 80);
    wait(kTrial - 2 * PollDelay::kInRow, 5'000, 1'000'000);
    EXPECT_EQ(wait(PollDelay::kBetweenTrials, 100, 80), PollDelay::kBetweenTrials);
}

TEST_F(PollDelayTest, SwitchedOffEveryWaitLooksAtOnce) {
    wait(PollDelay::kBeforeFirst + kTrial, 100, 50);
    delay.switch_off();
    EXPECT_EQ(wait(3 * PollDelay::kBetweenTrials, 100, 50), 0U);
}

}  // namespace
}  // namespace viaduct
