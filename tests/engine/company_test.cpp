// SPDX-License-Identifier: BSD-2-Clause
// What a rank learns from its yields, with a clock and yields made up for it.
#include "mpi-adi/engine/company.hpp"

#include <gtest/gtest.h>

namespace viaduct::mpi {
namespace {

constexpr int64_t kMillisecond = 1'000'000;

int64_t now = 0;
int64_t yield_takes = 0;

class CompanyTest : public testing::Test {
protected:
    CompanyTest() : company_([] { return now; }, [] { now += yield_takes; }) { now = kMillisecond; }
    void yield(int64_t takes, unsigned long_ones = 1) {
        yield_takes = takes;
        company_.give_way(long_ones);
    }
    // How long somebody is believed to compute from now on.
    int64_t belief() {
        const int64_t began = now;
        while (company_.computes()) now += kMillisecond;
        return now - began;
    }
    Company company_;
};

TEST_F(CompanyTest, is_none_before_a_yield_and_among_ranks_that_give_way) {
    EXPECT_FALSE(company_.computes());
    for (int i = 0; i < 100; i++) yield(10'000);
    EXPECT_FALSE(company_.computes());
}

TEST_F(CompanyTest, is_somebody_who_kept_the_processor_for_a_slice) {
    yield(3 * kMillisecond);
    EXPECT_TRUE(company_.computes());
}

TEST_F(CompanyTest, is_forgotten_after_a_while) {
    yield(3 * kMillisecond);
    EXPECT_GT(belief(), 0);
    EXPECT_FALSE(company_.computes());
}

TEST_F(CompanyTest, that_stays_is_asked_more_and_more_seldom) {
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

TEST_F(CompanyTest, that_has_gone_is_forgotten_at_once_and_begins_anew) {
    yield(3 * kMillisecond);
    const int64_t first = belief();
    yield(3 * kMillisecond);
    yield(10'000);
    EXPECT_FALSE(company_.computes());
    yield(3 * kMillisecond);
    EXPECT_EQ(belief(), first);
}

TEST_F(CompanyTest, takes_as_many_long_yields_in_a_row_as_asked_for) {
    yield(3 * kMillisecond, 2);
    EXPECT_FALSE(company_.computes());
    yield(10'000, 2);
    yield(3 * kMillisecond, 2);
    EXPECT_FALSE(company_.computes());
    yield(3 * kMillisecond, 2);
    EXPECT_TRUE(company_.computes());
}

}  // namespace
}  // namespace viaduct::mpi
