// SPDX-License-Identifier: BSD-2-Clause
// Clients and servers in the table of connections: how a request meets a waiter, is accepted, rejected or cancelled.
#include "kagent/connection_table.hpp"

#include <gtest/gtest.h>

#include "kagent_connection_testing.hpp"

namespace viaduct::kagent {
namespace {

using namespace table_testing;

TEST_F(ConnectionTableTest, RequestMeetsWaiterAndBothAreJoinedAfterConfirmation) {
    const uint64_t in = meet();
    EXPECT_EQ(fx.last_incoming.remote, at(1, "client"));
    accept(in);
    Event e = fx.take();
    EXPECT_EQ(e.what, "joined");
    EXPECT_EQ(e.who.session, 2u);
    EXPECT_EQ(e.side, 0u);
    EXPECT_EQ(e.peer.words[0], 7u);
    EXPECT_TRUE(fx.events.empty()) << "the acceptor is told only after the confirmation";
    table.confirm(2, e.number);
    e = fx.take();
    EXPECT_EQ(e.what, "joined");
    EXPECT_EQ(e.who.session, 1u);
    EXPECT_EQ(e.who.ticket, 11u);
    EXPECT_EQ(e.side, 1u);
    EXPECT_TRUE(fx.shared.empty());
    EXPECT_EQ(table.counts(), ConnectionTable::Counts{});
    EXPECT_EQ(table.connections_made(), 1u);
}

TEST_F(ConnectionTableTest, RequestWithoutWaiterIsNoMatchAfterTheGrace) {
    table.request(end(2, 20, at(1, "c")), at(1, "d"), kNever, now);
    EXPECT_EQ(table.next_deadline(), now + 100 * kMs);
    pass(99);
    EXPECT_TRUE(fx.events.empty());
    pass(1);
    const Event e = fx.take();
    EXPECT_EQ(e.status, Status::no_match);
    EXPECT_EQ(e.who.ticket, 20u);
    EXPECT_EQ(table.next_deadline(), kNever);
}

TEST_F(ConnectionTableTest, ARequestWithoutMatchIsToldTheNearestWait) {
    const auto nearest = [this](const EndAddress& to, uint64_t domain = 1) {
        table.request(end(2, 20, at(1, "c"), domain), to, kNever, now);
        pass(100);
        EXPECT_EQ(fx.take().status, Status::no_match);
        return fx.nearest_wait;
    };
    EXPECT_EQ(nearest(at(1, "greet")), EndAddress()) << "no program waits anywhere";
    table.wait(end(1, 10, at(1, "greet")));
    table.wait(end(1, 11, at(1, "measure")));
    table.wait(end(1, 12, at(2, "great")));
    table.wait(end(1, 13, at(3, "greet"), 2));
    EXPECT_EQ(nearest(at(1, "gret")), at(1, "greet"));
    EXPECT_EQ(nearest(at(1, "measured")), at(1, "measure"));
    EXPECT_EQ(nearest(at(2, "greet")), at(2, "great")) << "one host before all discriminators";
    EXPECT_EQ(nearest(at(9, "great")), at(2, "great"));
    EXPECT_EQ(nearest(at(1, "greet"), 2), at(3, "greet")) << "of one domain only";
    EXPECT_EQ(table.waiting().size(), 4u);
}

TEST_F(ConnectionTableTest, GraceIsNeverLongerThanTheTimeout) {
    table.request(end(2, 20, at(1, "c")), at(1, "d"), now + 30 * kMs, now);
    pass(30);
    EXPECT_EQ(fx.take().status, Status::no_match);
}

TEST_F(ConnectionTableTest, WaiterThatComesWithinTheGraceGetsTheRequest) {
    table.request(end(2, 20, at(1, "c")), at(1, "d"), kNever, now);
    pass(60);
    table.wait(end(1, 10, at(1, "d")));
    EXPECT_EQ(fx.take().what, "incoming");
    pass(1000);
    EXPECT_TRUE(fx.events.empty()) << "a request that was met has no grace any more";
}

TEST_F(ConnectionTableTest, WaitersOfOneAddressAreServedInTheirOrderOneRequestEach) {
    for (uint32_t t = 10; t < 13; ++t) table.wait(end(1, t, at(1, "d")));
    for (uint32_t t = 20; t < 22; ++t) table.request(end(2, t, at(1, "c")), at(1, "d"), kNever, now);
    EXPECT_EQ(fx.take().who.ticket, 10u);
    EXPECT_EQ(fx.take().who.ticket, 11u);
    EXPECT_TRUE(fx.events.empty());
    EXPECT_EQ(table.counts().waits, 1u);
}

TEST_F(ConnectionTableTest, HeldRequestsAreServedInTheirOrder) {
    for (uint32_t t = 20; t < 23; ++t) {
        End e = end(2, t, at(1, "c" + std::to_string(t)));
        table.request(e, at(1, "d"), kNever, now);
    }
    for (uint32_t t = 10; t < 13; ++t) {
        table.wait(end(1, t, at(1, "d")));
        EXPECT_EQ(fx.take().who.ticket, t);
        EXPECT_EQ(fx.last_incoming.remote, at(1, "c" + std::to_string(t + 10)));
    }
}

TEST_F(ConnectionTableTest, HostDiscriminatorAndDomainMustAllAgree) {
    table.wait(end(1, 10, at(1, "d")));
    table.request(end(2, 20, at(1, "c")), at(2, "d"), kNever, now);
    table.request(end(2, 21, at(1, "c")), at(1, "e"), kNever, now);
    table.request(end(2, 22, at(1, "c")), at(1, "dd"), kNever, now);
    table.request(end(2, 23, at(1, "c"), 2), at(1, "d"), kNever, now);
    EXPECT_TRUE(fx.events.empty());
}

TEST_F(ConnectionTableTest, MetRequestThatIsNotAcceptedInTimeTimesOutAndAcceptSaysTimeout) {
    const uint64_t in = meet("d", now + 500 * kMs);
    pass(500);
    Event e = fx.take();
    EXPECT_EQ(e.status, Status::timeout);
    EXPECT_EQ(e.who.session, 2u);
    accept(in);
    e = fx.take();
    EXPECT_EQ(e.status, Status::timeout);
    EXPECT_EQ(e.who.ticket, 11u);
    accept(in, 12);
    EXPECT_EQ(fx.take().status, Status::invalid) << "accept used the incoming up";
}

TEST_F(ConnectionTableTest, RejectOfAnAbandonedIncomingIsOk) {
    const uint64_t in = meet("d", now + 500 * kMs);
    pass(500);
    fx.take();
    EXPECT_EQ(table.reject({1, 12, 100}, in), Status::ok);
    EXPECT_EQ(table.reject({1, 12, 100}, in), Status::invalid);
    EXPECT_TRUE(fx.events.empty());
}

TEST_F(ConnectionTableTest, RejectTellsTheRequester) {
    const uint64_t in = meet();
    EXPECT_EQ(table.reject({1, 12, 100}, in), Status::ok);
    const Event e = fx.take();
    EXPECT_EQ(e.status, Status::rejected);
    EXPECT_EQ(e.who.ticket, 20u);
}

TEST_F(ConnectionTableTest, OthersCannotAcceptOrRejectAnIncoming) {
    const uint64_t in = meet();
    table.accept({3, 30, 300}, in, traits(), {}, now);
    EXPECT_EQ(fx.take().status, Status::invalid);
    table.accept({1, 31, 101}, in, traits(), {}, now);
    EXPECT_EQ(fx.take().status, Status::invalid) << "same process, other context";
    table.accept({3, 33, 100}, in, traits(), {}, now);
    EXPECT_EQ(fx.take().status, Status::invalid) << "a context of that number, in another process";
    EXPECT_EQ(table.reject({3, 32, 300}, in), Status::invalid);
    EXPECT_EQ(table.reject({1, 34, 101}, in), Status::invalid);
    EXPECT_EQ(table.reject({3, 35, 100}, in), Status::invalid);
    EXPECT_EQ(table.counts().met, 1u);
}

TEST_F(ConnectionTableTest, MismatchTellsTheAcceptorOnlyAndLeavesTheIncomingValid) {
    const uint64_t in = meet();
    ViTraits t = traits();
    t.reliability = 4;
    accept(in, 11, t);
    EXPECT_EQ(fx.take().status, Status::mismatch_level);
    accept(in, 12, traits(1));
    EXPECT_EQ(fx.take().status, Status::mismatch_mtu);
    t = traits();
    t.qos = 9;
    accept(in, 13, t);
    EXPECT_EQ(fx.take().status, Status::mismatch_qos);
    accept(in, 14);
    EXPECT_EQ(fx.take().what, "joined");
}

TEST_F(ConnectionTableTest, ContextWithTooManyIncomingsGetsNoMore) {
    for (uint32_t i = 0; i < 3; ++i) {
        table.wait(end(1, 10 + i, at(1, "d")));
        table.request(end(2, 20 + i, at(1, "c")), at(1, "d"), kNever, now);
        EXPECT_EQ(fx.take().what, "incoming");
    }
    table.wait(end(1, 15, at(1, "d")));
    EXPECT_EQ(fx.take().status, Status::out_of_resources);
}

// What was accepted, and what went back to being held, is no incoming any more.
TEST_F(ConnectionTableTest, IncomingsAreCountedWhileTheyAreOpen) {
    for (uint32_t i = 0; i < 10; ++i) {
        table.wait(end(1, 10 + i, at(1, "d")));
        table.request(end(2, 100 + i, at(1, "c")), at(1, "d"), kNever, now);
        const Event in = fx.take();
        ASSERT_EQ(in.what, "incoming");
        table.accept({1, 50 + i, 100}, in.number, traits(), {}, now);
        ASSERT_EQ(fx.take().what, "joined");
    }
    for (uint32_t round = 0; round < 3; ++round) {
        for (uint32_t i = 0; i < 2; ++i) table.wait(end(1, 200 + 2 * round + i, at(1, "e")));
        if (round == 0)
            for (uint32_t i = 0; i < 2; ++i) table.request(end(2, 300 + i, at(1, "c")), at(1, "e"), kNever, now);
        for (uint32_t i = 0; i < 2; ++i) EXPECT_EQ(fx.take().what, "incoming") << "round " << round;
        table.context_closed(100, now);
    }
}

TEST_F(ConnectionTableTest, RequesterThatDiesWhileMetLeavesAnIncomingThatTimesOut) {
    const uint64_t in = meet();
    table.session_ended(2, now);
    EXPECT_TRUE(fx.events.empty());
    accept(in);
    EXPECT_EQ(fx.take().status, Status::timeout);
    EXPECT_EQ(table.counts(), ConnectionTable::Counts{});
}

TEST_F(ConnectionTableTest, RequesterThatDiesBeforeConfirmingTimesTheAcceptOut) {
    accept(meet());
    fx.take();
    table.session_ended(2, now);
    const Event e = fx.take();
    EXPECT_EQ(e.status, Status::timeout);
    EXPECT_EQ(e.who.ticket, 11u);
    EXPECT_TRUE(fx.shared.empty());
}

TEST_F(ConnectionTableTest, RequesterThatNeverConfirmsTimesTheAcceptOut) {
    accept(meet());
    const Event joined = fx.take();
    pass(1000);
    EXPECT_EQ(fx.take().status, Status::timeout);
    table.confirm(2, joined.number);
    EXPECT_TRUE(fx.events.empty()) << "too late";
}

TEST_F(ConnectionTableTest, OnlyTheRequesterCanConfirm) {
    accept(meet());
    const Event joined = fx.take();
    table.confirm(1, joined.number);
    table.confirm(3, joined.number);
    EXPECT_TRUE(fx.events.empty());
    table.confirm(2, joined.number);
    EXPECT_EQ(fx.take().what, "joined");
}

TEST_F(ConnectionTableTest, AcceptorThatDiesBeforeAcceptingSendsTheRequestBackToBeingHeld) {
    meet();
    table.session_ended(1, now);
    EXPECT_TRUE(fx.events.empty());
    pass(50);
    table.wait(end(3, 30, at(1, "d")));
    const Event e = fx.take();
    EXPECT_EQ(e.what, "incoming");
    EXPECT_EQ(e.who.session, 3u);
}

TEST_F(ConnectionTableTest, RequestThatGoesBackToBeingHeldIsBeforeThoseThatCameLater) {
    meet();
    table.request(end(4, 40, at(1, "later")), at(1, "d"), kNever, now);
    table.session_ended(1, now);
    table.wait(end(3, 30, at(1, "d")));
    EXPECT_EQ(fx.take().what, "incoming");
    EXPECT_EQ(fx.last_incoming.remote, at(1, "client"));
}

TEST_F(ConnectionTableTest, RequestWhoseAcceptorDiedEndsAsTimeoutEvenWithoutALimit) {
    meet("d", kNever);
    table.session_ended(1, now);
    pass(100);
    EXPECT_EQ(fx.take().status, Status::timeout);
}

TEST_F(ConnectionTableTest, AcceptorThatDiesAfterAcceptingLeavesNothingBehind) {
    accept(meet());
    const Event joined = fx.take();
    table.session_ended(1, now);
    EXPECT_TRUE(fx.shared.empty());
    table.confirm(2, joined.number);
    EXPECT_TRUE(fx.events.empty());
    EXPECT_EQ(table.counts(), ConnectionTable::Counts{});
}

TEST_F(ConnectionTableTest, ClosingAContextEndsItsPartOnly) {
    table.wait(end(1, 10, at(1, "d")));
    End other = end(1, 11, at(2, "d"));
    other.party.context = 101;
    table.wait(other);
    table.context_closed(100, now);
    EXPECT_EQ(table.counts().waits, 1u);
    table.request(end(2, 20, at(1, "c")), at(2, "d"), kNever, now);
    EXPECT_EQ(fx.take().who.ticket, 11u);
}

TEST_F(ConnectionTableTest, FailureToMakeTheSegmentIsToldToBoth) {
    const uint64_t in = meet();
    fx.make_result = Status::out_of_resources;
    accept(in);
    EXPECT_EQ(fx.take().who.session, 2u);
    const Event e = fx.take();
    EXPECT_EQ(e.who.session, 1u);
    EXPECT_EQ(e.status, Status::out_of_resources);
    EXPECT_EQ(table.counts(), ConnectionTable::Counts{});
}

TEST_F(ConnectionTableTest, RequesterThatCannotTakeUpTheConnectionTellsTheAcceptorAtOnce) {
    accept(meet());
    const Event joined = fx.take();
    EXPECT_EQ(table.reject({3, 21, 300}, joined.number), Status::invalid) << "not of this context";
    EXPECT_EQ(table.reject({2, 21, 201}, joined.number), Status::invalid) << "nor by another context";
    EXPECT_EQ(table.reject({2, 21, 200}, joined.number), Status::ok);
    const Event e = fx.take();
    EXPECT_EQ(e.who.ticket, 11u);
    EXPECT_EQ(e.status, Status::rejected);
    EXPECT_FALSE(table.confirm(2, joined.number));
    EXPECT_EQ(table.counts(), ConnectionTable::Counts{});
    EXPECT_TRUE(fx.shared.empty());
}

TEST_F(ConnectionTableTest, RequesterThatCannotBeJoinedEndsTheAccept) {
    const uint64_t in = meet();
    fx.has_no_descriptors = 2;
    accept(in);
    const Event e = fx.take();
    EXPECT_EQ(e.who.ticket, 11u);
    EXPECT_EQ(e.status, Status::out_of_resources);
    EXPECT_EQ(table.counts(), ConnectionTable::Counts{});
    EXPECT_TRUE(fx.shared.empty());
}

TEST_F(ConnectionTableTest, AcceptorThatCannotBeJoinedEndsTheConfirmation) {
    accept(meet());
    const Event joined = fx.take();
    fx.has_no_descriptors = 1;
    EXPECT_FALSE(table.confirm(2, joined.number));
    EXPECT_EQ(table.connections_made(), 0u);
    EXPECT_TRUE(fx.shared.empty());
}

TEST_F(ConnectionTableTest, CancelledWaitAndRequestAreRemoved) {
    table.wait(end(1, 10, at(1, "d")));
    EXPECT_EQ(table.cancel({1, 90, 0}, 10), ConnectionTable::Cancelled::done);
    EXPECT_EQ(table.cancel({1, 91, 0}, 10), ConnectionTable::Cancelled::too_late);
    table.request(end(2, 20, at(1, "c")), at(1, "d"), kNever, now);
    EXPECT_EQ(table.cancel({1, 92, 0}, 20), ConnectionTable::Cancelled::too_late)
        << "another session's ticket";
    EXPECT_EQ(table.cancel({2, 93, 0}, 20), ConnectionTable::Cancelled::done);
    pass(1000);
    EXPECT_TRUE(fx.events.empty());
    EXPECT_EQ(table.counts(), ConnectionTable::Counts{});
}

TEST_F(ConnectionTableTest, CancelledMetRequestLeavesTheIncoming) {
    const uint64_t in = meet();
    EXPECT_EQ(table.cancel({2, 90, 0}, 20), ConnectionTable::Cancelled::done);
    accept(in);
    EXPECT_EQ(fx.take().status, Status::timeout);
}

TEST_F(ConnectionTableTest, CancelOfAnAcceptIsAnsweredAfterTheAccept) {
    accept(meet());
    const Event joined = fx.take();
    EXPECT_EQ(table.cancel({1, 90, 0}, 11), ConnectionTable::Cancelled::later);
    EXPECT_EQ(table.cancel({1, 91, 0}, 11), ConnectionTable::Cancelled::too_late) << "once";
    EXPECT_TRUE(fx.events.empty());
    table.confirm(2, joined.number);
    EXPECT_EQ(fx.take().what, "joined");
    const Event late = fx.take();
    EXPECT_EQ(late.what, "too_late");
    EXPECT_EQ(late.who.ticket, 90u);
}

}  // namespace
}  // namespace viaduct::kagent
