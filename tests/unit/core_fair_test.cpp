// SPDX-License-Identifier: BSD-2-Clause
// Shares by user: how much of something finite, whose turn it is, and which silent connection goes first.
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "core/fair/pending_connections.hpp"
#include "core/fair/places.hpp"
#include "core/fair/share.hpp"
#include "core/fair/turns.hpp"

namespace viaduct::fair {
namespace {

TEST(FairShare, AUserMayHaveAsMuchAsStaysFreeBesideIt) {
    EXPECT_EQ(left(100, 0, 0), 50u);
    EXPECT_EQ(left(100, 50, 50), 0u);
    EXPECT_EQ(left(100, 40, 40), 10u);
    EXPECT_EQ(left(100, 50, 0), 25u) << "the next one finds some";
    EXPECT_EQ(left(100, 100, 0), 0u);
    EXPECT_EQ(left(100, 120, 20), 0u) << "what could not be refused";
    EXPECT_EQ(left(0, 0, 0), 0u);
    EXPECT_EQ(left(UINT64_MAX, 0, 0), UINT64_MAX / 2);
}

TEST(FairShare, ManyThatTakeAllTheyCanGetTheSame) {
    constexpr uint64_t kAll = 1200;
    std::vector<uint64_t> his(3);
    uint64_t used = 0;
    for (bool more = true; more;) {
        more = false;
        for (uint64_t& have : his) {
            if (left(kAll, used, have) == 0) continue;
            ++have;
            ++used;
            more = true;
        }
    }
    for (const uint64_t have : his) EXPECT_NEAR(static_cast<double>(have), kAll / 4.0, 3);
    EXPECT_GT(left(kAll, used, 0), 100u) << "and a fourth finds some";
}

TEST(FairPlaces, TheOwnUserMayHaveAllAndAnotherOneItsShare) {
    constexpr uid_t kOwn = 7, kOne = 8, kOther = 9;
    Places places(12, kOwn);
    size_t of_one = 0;
    for (; places.has_room(kOne); ++of_one) places.change(kOne, 1);
    EXPECT_EQ(of_one, 6u);
    EXPECT_TRUE(places.has_room(kOther));
    for (int i = 0; i < 6; ++i) {
        EXPECT_TRUE(places.has_room(kOwn));
        places.change(kOwn, 1);
    }
    EXPECT_FALSE(places.has_room(kOwn));
    EXPECT_FALSE(places.has_room(kOther));
    places.change(kOne, -4);
    EXPECT_EQ(places.of(kOne), 2u);
    EXPECT_EQ(places.used(), 8u);
    EXPECT_TRUE(places.has_room(kOne));
    places.change(kOne, -2);
    places.change(kOne, 0);
    EXPECT_EQ(places.of(kOne), 0u);
}

TEST(FairTurns, AUserWithManyItemsGetsNoMoreThanOneWithOne) {
    Turns turns;
    int64_t many = 0, one = 0;
    for (int round = 0; round < 1000; ++round) {
        for (uint64_t item = 100; item < 400; ++item) turns.ready(7, item, 1);
        turns.ready(8, 1, 1);
        const auto t = turns.next();
        ASSERT_TRUE(t.has_value());
        const int64_t cost = t->user == 7 ? 2'000'000 : 20'000;  // his are dear, too
        turns.charge(t->user, cost);
        (t->user == 7 ? many : one) += cost;
    }
    EXPECT_NEAR(static_cast<double>(many), static_cast<double>(one), 2'100'000);
}

TEST(FairTurns, AUserThatComesAfterALongTimeIsNextButHasSavedNothing) {
    Turns turns;
    for (int i = 0; i < 100; ++i) {
        turns.ready(7, 1, 1);
        ASSERT_EQ(turns.next()->user, 7u);
        turns.charge(7, 1'000'000);
    }
    turns.ready(7, 1, 1);
    turns.ready(8, 2, 1);
    EXPECT_EQ(turns.next()->user, 8u);
    turns.charge(8, 3'000'000);
    turns.ready(8, 2, 1);
    EXPECT_EQ(turns.next()->user, 7u) << "what he did not want before is not his now";
}

TEST(FairTurns, OneUsersItemsAreServedInTheirOrderAndOnceWithAllEvents) {
    Turns turns;
    EXPECT_TRUE(turns.empty());
    EXPECT_FALSE(turns.next().has_value());
    for (const uint64_t item : {5u, 3u, 9u}) turns.ready(7, item, 1);
    turns.ready(7, 3, 4);
    std::vector<uint64_t> order;
    uint32_t events = 0;
    while (const auto t = turns.next()) {
        order.push_back(t->item);
        if (t->item == 3) events = t->events;
        turns.charge(7, 1);
    }
    EXPECT_EQ(order, (std::vector<uint64_t>{5, 3, 9}));
    EXPECT_EQ(events, 5u);
    EXPECT_TRUE(turns.empty());
}

TEST(FairPendingConnections, AtAUsersLimitItsOldestIsToBeClosed) {
    PendingConnections pending(3, 100);
    for (uint64_t item = 1; item <= 3; ++item) pending.add(7, item);
    EXPECT_EQ(pending.to_evict_for(7), 1u);
    EXPECT_EQ(pending.to_evict_for(8), 0u) << "another user has a limit of its own";
    pending.remove(7, 1);
    EXPECT_EQ(pending.to_evict_for(7), 0u);
    EXPECT_EQ(pending.oldest_of(7), 2u);
    EXPECT_EQ(pending.oldest_of(8), 0u);
}

TEST(FairPendingConnections, AtTheLimitOfAllTheOldestOfTheUserWithTheMostIsToBeClosed) {
    PendingConnections pending(50, 60);
    pending.add(8, 1);  // the oldest of all, and alone
    for (uint64_t item = 10; item < 50; ++item) pending.add(7, item);
    for (uint64_t item = 50; item < 69; ++item) pending.add(9, item);
    ASSERT_EQ(pending.size(), 60u);
    for (const uid_t user : {7u, 8u, 9u, 10u}) EXPECT_EQ(pending.to_evict_for(user), 10u) << user;
    pending.remove(7, 10);
    EXPECT_EQ(pending.to_evict_for(10), 0u);
    for (uint64_t item = 1; item < 70; ++item)
        for (const uid_t user : {7u, 8u, 9u}) pending.remove(user, item);
    EXPECT_EQ(pending.size(), 0u);
    EXPECT_EQ(pending.oldest_of_largest_user(), 0u);
}

}  // namespace
}  // namespace viaduct::fair
