// SPDX-License-Identifier: BSD-2-Clause
// From what length on another way is taken: figures as machines have given them.
#include "utils/measure/crossover.hpp"

#include <gtest/gtest.h>

namespace viaduct::measure {
namespace {

std::vector<Cost> costs(std::vector<double> ns) {
    std::vector<Cost> all;
    for (size_t i = 0; i < ns.size(); ++i) all.push_back({uint64_t{8192} << i, {ns[i], 2 * ns[i]}});
    return all;
}

TEST(Crossover, IsNeverWhereTheOtherWayIsWorse) {
    const Crossover c = crossover(costs({10, 20, 40}), costs({11, 25, 60}), 0.05);
    EXPECT_EQ(c.from, 0u);
    EXPECT_DOUBLE_EQ(c.quotient, 1);
}

TEST(Crossover, IsTheSizeFromWhichTheOtherWayIsBetter) {
    const Crossover c = crossover(costs({10, 20, 40}), costs({15, 10, 20}), 0.05);
    EXPECT_EQ(c.from, 16384u);
    EXPECT_NEAR(c.quotient, 0.63, 0.01);  // third root of a quarter
}

TEST(Crossover, IsTheLeastSizeWhereTheOtherWayIsBetterThroughout) {
    EXPECT_EQ(crossover(costs({10, 20, 40}), costs({5, 10, 20}), 0.05).from, 8192u);
}

TEST(Crossover, IsNotMovedByNoise) {
    EXPECT_EQ(crossover(costs({10, 20, 40}), costs({9.9, 19.8, 39}), 0.05).from, 0u);
}

TEST(Crossover, WeighsAllSizesThatFollow) {
    // Better in the middle, worse for the longest: what is lost there counts too.
    EXPECT_EQ(crossover(costs({10, 20, 40}), costs({10, 15, 80}), 0.05).from, 0u);
    EXPECT_EQ(crossover(costs({10, 20, 40}), costs({10, 5, 50}), 0.05).from, 16384u);
}

TEST(Crossover, OfNothingIsNever) { EXPECT_EQ(crossover({}, {}, 0.05).from, 0u); }

TEST(Crossover, JoinsTheTwoWays) {
    const std::vector<Cost> one = costs({1, 2, 3}), other = costs({7, 8, 9});
    EXPECT_EQ(joined(one, other, 16384)[0].ns[0], 1);
    EXPECT_EQ(joined(one, other, 16384)[1].ns[0], 8);
    EXPECT_EQ(joined(one, other, 0)[2].ns[0], 3);
    EXPECT_DOUBLE_EQ(quotient_of(one, one), 1);
}

}  // namespace
}  // namespace viaduct::measure
