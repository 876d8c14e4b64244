// SPDX-License-Identifier: BSD-2-Clause
// Requests wait for processes that are about to take files, and not for those that take none.
#include "kagent/descriptor_throttle.hpp"

#include <gtest/gtest.h>

namespace viaduct::kagent {
namespace {

class DescriptorThrottleTest : public ::testing::Test {
protected:
    static constexpr uid_t kUser = 1000;
    static constexpr int64_t kMs = 1'000'000;

    // What is under way to the user, charged and not.
    void fly(uint64_t files) {
        in_flight = files;
        limits.correct(kUser, Quota::descriptors, &charged, in_flight);
    }
    bool wait_after(int64_t ms) {
        now += ms * kMs;
        return throttle.must_wait(kUser, now);
    }
    static UserLimits eighty() {
        UserLimits l;
        l.descriptors = 80;  // ten of them are the reserve
        return l;
    }

    Limits limits{eighty()};
    uint64_t in_flight = 0, charged = 0;
    int64_t now = 1'000'000'000;
    DescriptorThrottle throttle{limits, [this](uid_t user) {
                      limits.correct(user, Quota::descriptors, &charged, in_flight);
                      return in_flight;
                  }};
};

TEST_F(DescriptorThrottleTest, NoProcessWaitsWhileThereIsRoom) {
    EXPECT_FALSE(wait_after(0));
    fly(70);
    EXPECT_FALSE(wait_after(10));
}

TEST_F(DescriptorThrottleTest, WhatIsHeldIsNotWaitedFor) {
    limits.take_anyway(kUser, Quota::descriptors, 80);
    EXPECT_FALSE(wait_after(0)) << "no process will give anything back";
}

TEST_F(DescriptorThrottleTest, RequestsWaitUntilFilesHaveBeenTaken) {
    fly(75);
    EXPECT_TRUE(wait_after(0));
    in_flight = 40;
    EXPECT_FALSE(wait_after(2));
    EXPECT_EQ(limits.used(kUser, Quota::descriptors), 40u);
}

TEST_F(DescriptorThrottleTest, OnlyAsLongAsSomeAreTaken) {
    for (uint64_t files = 79; files > 71; --files) {
        fly(files);
        EXPECT_TRUE(wait_after(900)) << files;
    }
    EXPECT_TRUE(wait_after(900));
    EXPECT_FALSE(wait_after(200))
        << "a process that stands still holds up the others of its user for no longer";
    EXPECT_FALSE(wait_after(10));
    fly(75);
    EXPECT_TRUE(wait_after(10)) << "those that came since are waited for";
    in_flight = 72;
    EXPECT_FALSE(wait_after(10)) << "those that stayed are not";
    in_flight = 0;
    EXPECT_FALSE(wait_after(10));
    fly(75);
    EXPECT_TRUE(wait_after(10)) << "and all is as at the beginning";
}

TEST_F(DescriptorThrottleTest, AnotherUserDoesNotWait) {
    fly(75);
    EXPECT_TRUE(wait_after(0));
    EXPECT_FALSE(throttle.must_wait(kUser + 1, now));
}

}  // namespace
}  // namespace viaduct::kagent
