// SPDX-License-Identifier: BSD-2-Clause
// Peer-to-peer requests in the table of connections: which of them match, and in which order.
#include "kagent/connection_table.hpp"

#include <gtest/gtest.h>

#include "kagent_connection_testing.hpp"

namespace viaduct::kagent {
namespace {

using namespace table_testing;

TEST_F(ConnectionTableTest, PeersMatchCrosswiseInAnyOrder) {
    table.peer(end(1, 10, at(1, "a")), at(2, "b"), kNever, now);
    EXPECT_TRUE(fx.events.empty());
    table.peer(end(2, 20, at(2, "b")), at(1, "a"), kNever, now);
    Event e = fx.take();
    EXPECT_EQ(e.who.session, 1u);
    EXPECT_EQ(e.side, 0u);
    e = fx.take();
    EXPECT_EQ(e.who.session, 2u);
    EXPECT_EQ(e.side, 1u);
    EXPECT_TRUE(fx.shared.empty());
}

TEST_F(ConnectionTableTest, PeersThatDoNotCrossDoNotMatch) {
    table.peer(end(1, 10, at(1, "a")), at(2, "b"), kNever, now);
    table.peer(end(2, 20, at(2, "b")), at(1, "x"), kNever, now);
    table.peer(end(2, 21, at(2, "x")), at(1, "a"), kNever, now);
    table.peer(end(2, 22, at(3, "b")), at(1, "a"), kNever, now);
    table.peer(end(2, 23, at(2, "b"), 2), at(1, "a"), kNever, now);
    table.peer(end(2, 24, at(1, "a")), at(2, "b"), kNever, now);
    EXPECT_TRUE(fx.events.empty());
    EXPECT_EQ(table.counts().peers, 6u);
}

TEST_F(ConnectionTableTest, PeerRequestNeverSatisfiesAWait) {
    table.wait(end(1, 10, at(1, "d")));
    table.peer(end(2, 20, at(1, "c")), at(1, "d"), now + 10 * kMs, now);
    pass(10);
    const Event e = fx.take();
    EXPECT_EQ(e.status, Status::timeout);
    EXPECT_EQ(e.who.ticket, 20u);
    EXPECT_EQ(table.counts().waits, 1u);
}

TEST_F(ConnectionTableTest, IdenticalPairsOfPeersAreMatchedInTheirOrder) {
    for (uint32_t t = 10; t < 13; ++t) table.peer(end(1, t, at(1, "same")), at(1, "same"), kNever, now);
    for (uint32_t t = 20; t < 23; ++t) {
        table.peer(end(2, t, at(1, "same")), at(1, "same"), kNever, now);
        EXPECT_EQ(fx.take().who.ticket, t - 10);
        EXPECT_EQ(fx.take().who.ticket, t);
    }
    pass(10'000);
    EXPECT_TRUE(fx.events.empty());
}

TEST_F(ConnectionTableTest, OneProcessMayConnectToItselfUnderEqualAddresses) {
    table.peer(end(1, 10, at(1, "same")), at(1, "same"), kNever, now);
    table.peer(end(1, 11, at(1, "same")), at(1, "same"), kNever, now);
    EXPECT_TRUE(fx.events.empty()) << "another process comes first, for the grace time";
    pass(100);
    EXPECT_EQ(fx.take().who.ticket, 10u);
    EXPECT_EQ(fx.take().who.ticket, 11u);
}

TEST_F(ConnectionTableTest, OneProcessMayConnectToItselfUnderTwoAddressesAtOnce) {
    table.peer(end(1, 10, at(1, "a")), at(1, "b"), kNever, now);
    table.peer(end(1, 11, at(1, "b")), at(1, "a"), kNever, now);
    EXPECT_EQ(fx.take().who.ticket, 10u);
    EXPECT_EQ(fx.take().who.ticket, 11u);
}

// Both are meant for two peers in another process, of which one has come.
TEST_F(ConnectionTableTest, OneOfTwoEqualRequestsWaitsOnWhenTheOtherHasFoundItsPeer) {
    for (const uint32_t ticket : {10u, 11u}) table.peer(end(1, ticket, at(1, "a")), at(1, "a"), now + 1000 * kMs, now);
    table.peer(end(2, 20, at(1, "a")), at(1, "a"), now + 1000 * kMs, now);
    EXPECT_EQ(fx.take().who.ticket, 10u);
    EXPECT_EQ(fx.take().who.ticket, 20u);
    pass(500);
    EXPECT_TRUE(fx.events.empty()) << "its grace is over, its time is not";
    pass(500);
    const Event e = fx.take();
    EXPECT_EQ(e.who.ticket, 11u);
    EXPECT_EQ(e.status, Status::timeout);
}

TEST_F(ConnectionTableTest, PeersThatDifferAreBothToldInWhat) {
    table.peer(end(1, 10, at(1, "a")), at(1, "b"), kNever, now);
    End b = end(2, 20, at(1, "b"));
    b.traits.max_transfer = 4096;
    table.peer(b, at(1, "a"), kNever, now);
    for (const uint32_t ticket : {10u, 20u}) {
        const Event e = fx.take();
        EXPECT_EQ(e.status, Status::mismatch_mtu);
        EXPECT_EQ(e.who.ticket, ticket);
    }
    EXPECT_EQ(table.counts(), ConnectionTable::Counts{});
}

TEST_F(ConnectionTableTest, PeerWithoutPartnerTimesOutAtItsOwnTime) {
    table.peer(end(1, 10, at(1, "a")), at(1, "b"), now + 70 * kMs, now);
    table.peer(end(2, 20, at(1, "x")), at(1, "y"), kNever, now);
    pass(69);
    EXPECT_TRUE(fx.events.empty());
    pass(1);
    EXPECT_EQ(fx.take().status, Status::timeout);
    pass(1'000'000);
    EXPECT_TRUE(fx.events.empty()) << "the other has no limit";
}

// Its process counts on the deadline, and both ends are told of a connection at once: it would be a
// connection of one.
TEST_F(ConnectionTableTest, APeerRequestIsNotJoinedAfterItsDeadline) {
    table.peer(end(1, 10, at(1, "a")), at(1, "b"), now + 10 * kMs, now);
    now += 10 * kMs;  // the agent has no processor: messages come before it looks at the time
    table.peer(end(2, 20, at(1, "b")), at(1, "a"), kNever, now);
    const Event late = fx.take();
    EXPECT_EQ(late.what, "failed");
    EXPECT_EQ(late.who.session, 1u);
    EXPECT_EQ(late.status, Status::timeout);
    EXPECT_TRUE(fx.events.empty());
    table.peer(end(1, 11, at(1, "a")), at(1, "b"), kNever, now);
    EXPECT_EQ(fx.take().what, "joined");
    EXPECT_EQ(fx.take().what, "joined");
}

TEST_F(ConnectionTableTest, OfTwoPeersNoneIsJoinedAlone) {
    for (const uint64_t poor : {1, 2}) {
        fx.has_no_descriptors = poor;
        table.peer(end(1, 10, at(1, "a")), at(1, "b"), kNever, now);
        table.peer(end(2, 20, at(1, "b")), at(1, "a"), kNever, now);
        EXPECT_EQ(fx.take().what, "failed");
        EXPECT_EQ(fx.take().what, "failed");
        EXPECT_TRUE(fx.events.empty());
    }
    EXPECT_EQ(table.connections_made(), 0u);
    EXPECT_TRUE(fx.shared.empty());
}

}  // namespace
}  // namespace viaduct::kagent
