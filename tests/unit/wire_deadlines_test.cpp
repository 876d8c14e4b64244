// SPDX-License-Identifier: BSD-2-Clause
// The deadlines of many links: the heap against a plain list, and that which lies beside it.
#include "providers/wire/deadlines.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace viaduct::wire {
namespace {

TEST(WireDeadlines, TheEarliestIsThatOfAPlainList) {
    constexpr uint32_t kLinks = 50;
    Deadlines deadlines(kLinks);
    std::vector<Time> list(kLinks, kNoTime);
    std::mt19937 random(1);
    for (int i = 0; i < 20'000; ++i) {
        const uint32_t link = random() % kLinks;
        const Time due = random() % 4 == 0 ? kNoTime : static_cast<Time>(random() % 1000);
        deadlines.set(link, due);
        list[link] = due;
        const Time earliest = *std::min_element(list.begin(), list.end());
        ASSERT_EQ(deadlines.earliest(), earliest);
        if (earliest != kNoTime) {
            ASSERT_EQ(list[deadlines.first()], earliest);
        }
    }
}

TEST(WireDeadlines, WhatIsDueSoonIsFirstUntilItIsDropped) {
    Deadlines deadlines(4);
    deadlines.set(0, 1000);
    deadlines.set_soon(1, 50);
    EXPECT_EQ(deadlines.earliest(), 50);
    EXPECT_EQ(deadlines.first(), 1u);
    deadlines.set(2, 20);
    EXPECT_EQ(deadlines.first(), 2u);
    deadlines.set(2, kNoTime);
    deadlines.set_soon(1, 40);  // the same link's, earlier
    EXPECT_EQ(deadlines.earliest(), 40);
    deadlines.drop_soon(0);  // not its
    EXPECT_EQ(deadlines.first(), 1u);
    deadlines.drop_soon(1);
    EXPECT_EQ(deadlines.earliest(), 1000);
    EXPECT_EQ(deadlines.first(), 0u);
}

TEST(WireDeadlines, OfTwoThatAreDueSoonNoneIsLost) {
    Deadlines deadlines(4);
    deadlines.set(2, 1000);
    deadlines.set_soon(1, 50);
    deadlines.set_soon(2, 30);
    EXPECT_EQ(deadlines.first(), 2u);
    EXPECT_EQ(deadlines.earliest(), 30);
    deadlines.set(2, kNoTime);
    EXPECT_EQ(deadlines.first(), 1u);
    deadlines.drop_soon(1);
    EXPECT_EQ(deadlines.earliest(), kNoTime);
    deadlines.set_soon(3, 70);
    deadlines.set_soon(2, 60);
    deadlines.drop_soon(3);
    EXPECT_EQ(deadlines.first(), 2u);
    EXPECT_EQ(deadlines.earliest(), 60);
}

}  // namespace
}  // namespace viaduct::wire
