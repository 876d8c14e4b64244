// SPDX-License-Identifier: BSD-2-Clause
// What a wait does after each fruitless pass, with a clock and yields made up for it.
#include "core/wait/wait_policy.hpp"

#include <gtest/gtest.h>

namespace viaduct {
namespace {

constexpr int64_t kPolicyMs = 1'000'000;
constexpr unsigned kPolicyYields = 20;

int64_t policy_now = 0;
int64_t policy_yield = 0;

class WaitPolicyTest : public testing::Test {
protected:
    using Step = WaitPolicy::Step;
    WaitPolicyTest() : contention([] { return policy_now; }, [] { policy_now += policy_yield; }) {
        policy_now = kPolicyMs;
    }
    Step next(bool crowded, bool here = false, bool has_spun = false) {
        return policy.next(crowded, kPolicyYields, has_spun, [here] { return here; });
    }
    // How many of the next steps are this one before another comes.
    unsigned in_row(Step step, bool crowded) {
        unsigned count = 0;
        while (next(crowded) == step) ++count;
        return count;
    }
    void another_thread_computes() {
        policy_yield = 3 * kPolicyMs;
        contention.give_way(1);
    }
    SpinLimit limit;
    CpuContention contention;
    WaitPolicy policy{limit, contention};
};

TEST_F(WaitPolicyTest, LooksForEverWhereProcessorsAboundAndAsksNowAndThen) {
    for (int i = 0; i < 3; ++i) EXPECT_EQ(in_row(Step::pause, false), WaitPolicy::kPassesBetweenYields - 1);
}

TEST_F(WaitPolicyTest, LooksThenYieldsThenSleepsInACrowd) {
    EXPECT_EQ(in_row(Step::pause, true), SpinLimit::kMost - 1);
    EXPECT_EQ(in_row(Step::yield, true), kPolicyYields - 1) << "one has been seen already";
    EXPECT_EQ(next(true), Step::sleep);
    EXPECT_EQ(next(true), Step::sleep);
}

TEST_F(WaitPolicyTest, LooksForShorterAfterAFruitlessWait) {
    in_row(Step::pause, true);
    policy.moved(true);
    EXPECT_EQ(in_row(Step::pause, true), SpinLimit::kMost / 2 - 1);
}

TEST_F(WaitPolicyTest, LooksForLongerAfterARewardWhileLooking) {
    for (int i = 0; i < 10; ++i) limit.expired();
    for (int i = 0; i < 3; ++i) EXPECT_EQ(next(true), Step::pause);
    policy.moved(true);
    EXPECT_EQ(limit.limit(), 12u);
    // What came after the looking says nothing of how long to look.
    for (int i = 0; i < 30; ++i) next(true);
    policy.moved(true);
    EXPECT_LT(limit.limit(), 12u);
}

TEST_F(WaitPolicyTest, GivesWayAtOnceToTheOneItWaitsForOnItsOwnProcessor) {
    EXPECT_EQ(next(true, true), Step::yield);
    EXPECT_EQ(limit.limit(), SpinLimit::kMost) << "that says nothing about how long to look for running threads";
    policy.moved(true);
    EXPECT_EQ(next(false, true), Step::pause) << "where processors abound it runs elsewhere";
}

TEST_F(WaitPolicyTest, SleepsAfterLookingBesideAComputingThread) {
    another_thread_computes();
    for (const bool crowded : {false, true}) {
        EXPECT_EQ(in_row(Step::pause, crowded), SpinLimit::kMost - 1);
        EXPECT_EQ(next(crowded), Step::sleep);
        policy.moved(false);
    }
    policy_now += 3000 * kPolicyMs;
    EXPECT_EQ(in_row(Step::pause, false), WaitPolicy::kPassesBetweenYields - 1) << "it has to be asked anew";
}

TEST_F(WaitPolicyTest, OneThatHasSpunSleepsAtOnce) { EXPECT_EQ(next(false, false, true), Step::sleep); }

TEST_F(WaitPolicyTest, SwitchedOffNothingIsLearnt) {
    limit.switch_off();
    contention.switch_off();
    another_thread_computes();
    EXPECT_FALSE(contention.computes());
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(in_row(Step::pause, true), SpinLimit::kMost - 1);
        policy.moved(true);
    }
}

}  // namespace
}  // namespace viaduct
