// SPDX-License-Identifier: BSD-2-Clause
// When a wait looks for the first time, learnt from how long waits took either way.
#include "mpi-adi/engine/first_look.hpp"

#include <gtest/gtest.h>

namespace viaduct::mpi {
namespace {

int64_t elapsed = 0;

class FirstLookTest : public testing::Test {
protected:
    FirstLookTest() { elapsed = 0; }
    // So many waits that take these times; how many of them looked later.
    unsigned wait(unsigned waits, int64_t at_once, int64_t later) {
        unsigned late = 0;
        for (unsigned i = 0; i < waits; i++) {
            const bool is_late = look.is_late();
            late += is_late ? 1 : 0;
            elapsed += is_late ? later : at_once;
        }
        return late;
    }
    static constexpr unsigned kTrial = 2 * FirstLook::kEachWay * FirstLook::kInRow;
    FirstLook look{[] { return elapsed; }};
};

TEST_F(FirstLookTest, BeginsByLookingAtOnce) { EXPECT_EQ(wait(FirstLook::kBeforeFirst, 100, 50), 0U); }

TEST_F(FirstLookTest, ATrialIsHalfEachWay) {
    wait(FirstLook::kBeforeFirst, 100, 50);
    EXPECT_EQ(wait(FirstLook::kInRow, 100, 50), 0U);
    EXPECT_EQ(wait(FirstLook::kInRow, 100, 50), FirstLook::kInRow);
    EXPECT_EQ(wait(kTrial - 2 * FirstLook::kInRow, 100, 50), (FirstLook::kEachWay - 1) * FirstLook::kInRow);
}

TEST_F(FirstLookTest, LaterWhereThatIsQuicker) {
    wait(FirstLook::kBeforeFirst + kTrial, 100, 99);
    EXPECT_EQ(wait(FirstLook::kBetweenTrials, 100, 99), FirstLook::kBetweenTrials);
}

TEST_F(FirstLookTest, AtOnceWhereItIsNot) {
    wait(FirstLook::kBeforeFirst + kTrial, 100, 100);
    EXPECT_EQ(wait(FirstLook::kBetweenTrials, 100, 100), 0U);
}

TEST_F(FirstLookTest, FindsOutWhenItHasChanged) {
    wait(FirstLook::kBeforeFirst + kTrial, 100, 80);
    wait(FirstLook::kBetweenTrials + kTrial, 10, 60);
    EXPECT_EQ(wait(FirstLook::kBetweenTrials, 10, 60), 0U);
    wait(kTrial, 100, 80);
    EXPECT_EQ(wait(FirstLook::kBetweenTrials, 100, 80), FirstLook::kBetweenTrials);
}

// Interrupts in all rows but one of each way decide nothing.
TEST_F(FirstLookTest, TheQuickestRowCounts) {
    wait(FirstLook::kBeforeFirst, 100, 100);
    wait(2 * FirstLook::kInRow, 100, 80);
    wait(kTrial - 2 * FirstLook::kInRow, 5'000, 1'000'000);
    EXPECT_EQ(wait(FirstLook::kBetweenTrials, 100, 80), FirstLook::kBetweenTrials);
}

}  // namespace
}  // namespace viaduct::mpi
