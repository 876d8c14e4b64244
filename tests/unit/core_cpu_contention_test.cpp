// SPDX-License-Identifier: BSD-2-Clause
// What a process that waits learns from its yields, with a clock and yields made up for it.
#include "core/wait/cpu_contention.hpp"

#include <gtest/gtest.h>

namespace viaduct {
namespace {

constexpr int64_t kMillisecond = 1'000'000;

int64_t now = 0;
int64_t yield_takes = 0;

class CpuContentionTest : public testing::Test {
protected:
    CpuContentionTest() : contention_([] { return now; }, [] { now += yield_takes; }) { now = kMillisecond; }
    void yield(int64_t takes, unsigned long_ones = 1) {
        yield_takes = takes;
        contention_.give_way(long_ones);
    }
    // How long somebody is believed to compute from now on.
    int64_t belief() {
        const int64_t began = now;
        while (contention_.computes()) now += kMillisecond;
        return now - began;
    }
    CpuContention contention_;
};

TEST_F(CpuContentionTest, IsNoneBeforeAYieldAndAmongRanksThatGiveWay) {
    EXPECT_FALSE(contention_.computes());
    for (int i = 0; i < 100; i++) yield(10'000);
    EXPECT_FALSE(contention_.computes());
}

TEST_F(CpuContentionTest, IsSomebodyWhoKeptTheProcessorForASlice) {
    yield(3 * kMillisecond);
    EXPECT_TRUE(contention_.computes());
}

TEST_F(CpuContentionTest, IsForgottenAfterAWhile) {
    yield(3 * kMillisecond);
    EXPECT_GT(belief(), 0);
    EXPECT_FALSE(contention_.computes());
}

TEST_F(CpuContentionTest, ThatStaysIsAskedMoreAndMoreSeldom) {
    yield(3 * kMillisecond);
    int64_t before = belief();
    for (int i = 0; i < 3; i++) {
        yield(3 * kMillisecond);
        const int64_t again = belief();
        EXPECT_GT(again, before);
        before = again;
    }
    for (int i = 0; i < 100; i++) yield(3 * kMillisecond);
    EXPECT_LT(belief(), 2000 * kMillisecond) << "whoever has gone must be noticed";
}

TEST_F(CpuContentionTest, ThatHasGoneIsForgottenAtOnceAndBeginsAnew) {
    yield(3 * kMillisecond);
    const int64_t first = belief();
    yield(3 * kMillisecond);
    yield(10'000);
    EXPECT_FALSE(contention_.computes());
    yield(3 * kMillisecond);
    EXPECT_EQ(belief(), first);
}

TEST_F(CpuContentionTest, TakesAsManyLongYieldsInARowAsAskedFor) {
    yield(3 * kMillisecond, 2);
    EXPECT_FALSE(contention_.computes());
    yield(10'000, 2);
    yield(3 * kMillisecond, 2);
    EXPECT_FALSE(contention_.computes());
    yield(3 * kMillisecond, 2);
    EXPECT_TRUE(contention_.computes());
}

TEST_F(CpuContentionTest, SwitchedOffIsNobody) {
    contention_.switch_off();
    const int64_t before = now;
    for (int i = 0; i < 10; i++) yield(3 * kMillisecond);
    EXPECT_EQ(now - before, 30 * kMillisecond) << "it gives way all the same";
    EXPECT_FALSE(contention_.computes());
}

}  // namespace
}  // namespace viaduct
