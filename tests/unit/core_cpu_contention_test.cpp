// SPDX-License-Identifier: BSD-2-Clause
// What a process that waits learns from its yields, with a clock and yields made up for it.
#include "core/wait/cpu_contention.hpp"

#include <gtest/gtest.h>

namespace viaduct {
namespace {

constexpr int64_t kSliceMs = 1'000'000;

int64_t fake_now = 0;
int64_t fake_yield = 0;

class CpuContentionTest : public testing::Test {
protected:
    CpuContentionTest() : contention_([] { return fake_now; }, [] { fake_now += fake_yield; }) { fake_now = kSliceMs; }
    void yield(int64_t takes, unsigned long_ones = 1) {
        fake_yield = takes;
        contention_.give_way(long_ones);
    }
    // How long another thread counts as computing from now on.
    int64_t validity() {
        const int64_t began = fake_now;
        while (contention_.computes()) fake_now += kSliceMs;
        return fake_now - began;
    }
    CpuContention contention_;
};

TEST_F(CpuContentionTest, IsNoneBeforeAYieldAndAmongRanksThatGiveWay) {
    EXPECT_FALSE(contention_.computes());
    for (int i = 0; i < 100; i++) yield(10'000);
    EXPECT_FALSE(contention_.computes());
}

TEST_F(CpuContentionTest, IsAThreadThatKeptTheProcessorForASlice) {
    yield(3 * kSliceMs);
    EXPECT_TRUE(contention_.computes());
}

TEST_F(CpuContentionTest, IsDroppedAfterAWhile) {
    yield(3 * kSliceMs);
    EXPECT_GT(validity(), 0);
    EXPECT_FALSE(contention_.computes());
}

TEST_F(CpuContentionTest, ThatStaysIsAskedMoreAndMoreSeldom) {
    yield(3 * kSliceMs);
    int64_t before = validity();
    for (int i = 0; i < 3; i++) {
        yield(3 * kSliceMs);
        const int64_t again = validity();
        EXPECT_GT(again, before);
        before = again;
    }
    for (int i = 0; i < 100; i++) yield(3 * kSliceMs);
    EXPECT_LT(validity(), 2000 * kSliceMs) << "that the other thread has ended must be noticed";
}

TEST_F(CpuContentionTest, ThatHasEndedIsDroppedAtOnceAndBeginsAnew) {
    yield(3 * kSliceMs);
    const int64_t first = validity();
    yield(3 * kSliceMs);
    yield(10'000);
    EXPECT_FALSE(contention_.computes());
    yield(3 * kSliceMs);
    EXPECT_EQ(validity(), first);
}

TEST_F(CpuContentionTest, TakesAsManyLongYieldsInARowAsAskedFor) {
    yield(3 * kSliceMs, 2);
    EXPECT_FALSE(contention_.computes());
    yield(10'000, 2);
    yield(3 * kSliceMs, 2);
    EXPECT_FALSE(contention_.computes());
    yield(3 * kSliceMs, 2);
    EXPECT_TRUE(contention_.computes());
}

TEST_F(CpuContentionTest, SwitchedOffIsNone) {
    contention_.switch_off();
    const int64_t before = fake_now;
    for (int i = 0; i < 10; i++) yield(3 * kSliceMs);
    EXPECT_EQ(fake_now - before, 30 * kSliceMs) << "it gives way all the same";
    EXPECT_FALSE(contention_.computes());
}

}  // namespace
}  // namespace viaduct
