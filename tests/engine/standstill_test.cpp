// SPDX-License-Identifier: BSD-2-Clause
// A deadlock is told when it is proven, and only then: each rank of it has looked, and found nothing.
#include <gtest/gtest.h>

#include "utils/cmpiinfo/waits.hpp"

using namespace viaduct::cmpiinfo;

namespace {

// Two ranks that wait for each other.
struct Stuck : testing::Test {
    Stuck() : job{1, 2, {}, {}, {}} {
        for (int rank = 0; rank < 2; rank++) {
            RankView view;
            view.rank = rank;
            view.pid = 100 + rank;
            view.waits.emplace_back().peers = {1 - rank};
            job.ranks.push_back(view);
        }
    }
    bool look() { return standstill.proven_by(&job); }
    void pass(size_t rank, uint32_t times = 2) { job.ranks[rank].idle_passes += times; }
    void pass_all() {
        for (size_t rank = 0; rank < job.ranks.size(); rank++) pass(rank);
    }

    JobWaits job;
    Standstill standstill;
};

TEST_F(Stuck, IsProvenByTwoRoundsOfPasses) {
    EXPECT_FALSE(look());
    pass_all();
    EXPECT_FALSE(look());
    pass(0);
    EXPECT_FALSE(look());
    pass(1, 1);
    EXPECT_FALSE(look());
    pass(1, 1);
    EXPECT_TRUE(look());
    EXPECT_EQ(job.stuck, (std::vector<int>{0, 1}));
    EXPECT_TRUE(look()) << "it lasts";
}

TEST_F(Stuck, IsProvenAnewWhenARankHasMovedSomething) {
    EXPECT_FALSE(look());
    pass_all();
    EXPECT_FALSE(look());
    pass_all();
    job.ranks[1].moving_passes++;
    EXPECT_FALSE(look());
    pass_all();
    EXPECT_FALSE(look());
    pass_all();
    EXPECT_TRUE(look());
}

TEST_F(Stuck, IsProvenAnewWhenARankWaitsForAnotherThing) {
    EXPECT_FALSE(look());
    pass_all();
    EXPECT_FALSE(look());
    pass_all();
    job.ranks[0].waits[0].place++;
    EXPECT_FALSE(look());
}

TEST_F(Stuck, IsNoneWhileARankDoesNotLook) {
    int looks = 0;
    for (; looks < 100 && !look(); looks++) pass(0);
    EXPECT_LT(looks, 100) << "it is waited for without an end";
    EXPECT_TRUE(job.stuck.empty());
    EXPECT_TRUE(job.cycle.empty());
}

TEST_F(Stuck, IsToldOfThoseThatLookWhereAnotherOneDoesNot) {
    RankView third;
    third.rank = 2;
    third.pid = 102;
    third.waits.emplace_back().peers = {0};
    job.ranks.push_back(third);
    int looks = 0;
    for (; looks < 100 && !look(); looks++) {
        pass(0);
        pass(1);
    }
    EXPECT_LT(looks, 100);
    EXPECT_EQ(job.stuck, (std::vector<int>{0, 1}));
}

TEST_F(Stuck, CountsComeRound) {
    job.ranks[0].idle_passes = 0xffff'ffff;
    EXPECT_FALSE(look());
    pass_all();
    EXPECT_FALSE(look());
    pass_all();
    EXPECT_TRUE(look());
}

}  // namespace
