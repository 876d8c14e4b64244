// SPDX-License-Identifier: BSD-2-Clause
// How many iterations vipperf chooses, by given times: what a machine really takes is no matter here.
#include "utils/vipperf/fitting.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace viaduct::vipperf {
namespace {

constexpr double kSample = 30e6;  // ns
constexpr uint64_t kMost = 1'000'000;

TEST(VipperfFitting, AsManyAsFitIntoTheSample) {
    std::vector<uint64_t> tries;
    const auto chosen = fitting(kSample, kMost, [&](uint64_t n) {
        tries.push_back(n);
        return 1000.0 * static_cast<double>(n);
    });
    EXPECT_EQ(30'000u, chosen);
    EXPECT_EQ((std::vector<uint64_t>{kFewest, 3'000}), tries);
}

TEST(VipperfFitting, TheSecondTryHasWarmCaches) {
    const auto chosen = fitting(kSample, kMost, [](uint64_t n) {
        return (n == kFewest ? 10'000.0 : 500.0) * static_cast<double>(n);
    });
    EXPECT_EQ(60'000u, chosen);
}

TEST(VipperfFitting, TheFewestWhereOneTakesLongerThanTheSample) {
    const auto chosen = fitting(kSample, kMost, [](uint64_t n) { return 5e9 * static_cast<double>(n); });
    EXPECT_EQ(kFewest, chosen);
}

TEST(VipperfFitting, TheMostWhereNoTimePasses) {
    EXPECT_EQ(kMost, fitting(1e30, kMost, [](uint64_t) { return 0.0; }));
}

}  // namespace
}  // namespace viaduct::vipperf
