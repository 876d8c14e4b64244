// SPDX-License-Identifier: BSD-2-Clause
// The rendezvous state machine by itself: time is a number, effects are a list.
#include "kagent/connection_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace viaduct::kagent {
namespace {

constexpr int64_t kMs = 1'000'000;

struct Event {
    std::string what;  // "incoming", "failed", "joined", "too_late"
    Party who;
    Status status = Status::ok;
    uint64_t number = 0;  // incoming or connection
    uint32_t side = 0;
    End peer;
};

class Recorder final : public ConnectionEffects {
public:
    void incoming(const Party& w, const Incoming& in) override {
        events.push_back({"incoming", w, Status::ok, in.incoming, 0, {}});
        last_incoming = in;
    }
    void failed(const Party& w, Status s) override { events.push_back({"failed", w, s, 0, 0, {}}); }
    Status make(uint64_t c, const End&, const End&) override {
        if (make_result == Status::ok) shared.push_back(c);
        return make_result;
    }
    bool joined(uint64_t c, const End& own, const End& peer, uint32_t side) override {
        if (own.party.session == has_no_descriptors) return false;
        events.push_back({"joined", own.party, Status::ok, c, side, peer});
        return true;
    }
    bool joined_both(uint64_t c, const End& first, const End& second) override {
        const bool both =
            first.party.session != has_no_descriptors && second.party.session != has_no_descriptors;
        for (const auto& [own, peer, side] :
             {std::tuple(&first, &second, 0U), std::tuple(&second, &first, 1U)}) {
            if (both)
                joined(c, *own, *peer, side);
            else
                failed(own->party, Status::out_of_resources);
        }
        return both;
    }
    void settled(uint64_t c) override { std::erase(shared, c); }
    void cancel_too_late(const Party& w) override { events.push_back({"too_late", w, Status::ok, 0, 0, {}}); }
    void ticket_opened(uint64_t session) override { ++open[session]; }
    void ticket_closed(uint64_t session) override { --open[session]; }

    Event take() {
        if (events.empty()) return {"nothing", {}, Status::ok, 0, 0, {}};
        Event e = events.front();
        events.erase(events.begin());
        return e;
    }
    std::vector<Event> events;
    std::vector<uint64_t> shared;  // made and not settled
    std::map<uint64_t, int> open;
    Incoming last_incoming;
    Status make_result = Status::ok;
    uint64_t has_no_descriptors = 0;  // a session that joined() refuses
};

class ConnectionTableTest : public ::testing::Test {
protected:
    static ConnectionRules rules() {
        ConnectionRules r;
        r.grace_ns = 100 * kMs;
        r.confirm_ns = 1000 * kMs;
        r.max_incoming = 3;
        return r;
    }
    static EndAddress at(uint8_t host, const std::string& d) {
        EndAddress a;
        a.host.bytes[5] = host;
        a.discriminator_len = static_cast<uint16_t>(d.size());
        std::memcpy(a.discriminator, d.data(), d.size());
        return a;
    }
    static ViTraits traits(uint64_t mtu = 65600) {
        ViTraits t;
        t.reliability = 2;
        t.max_transfer = mtu;
        return t;
    }
    static End end(uint64_t session, uint32_t ticket, const EndAddress& local, uint64_t domain = 1) {
        End e;
        e.party = {session, ticket, session * 100};
        e.domain = domain;
        e.local = local;
        e.traits = traits();
        e.words = {static_cast<uint32_t>(session)};
        return e;
    }
    // Session 1 waits at d, session 2 asks for it; returns the incoming's number.
    uint64_t meet(const std::string& d = "d", Deadline deadline = kNever) {
        table.wait(end(1, 10, at(1, d)));
        table.request(end(2, 20, at(1, "client")), at(1, d), deadline, now);
        const Event e = fx.take();
        EXPECT_EQ(e.what, "incoming");
        EXPECT_EQ(e.who.session, 1u);
        return e.number;
    }
    void accept(uint64_t incoming, uint32_t ticket = 11, const ViTraits& t = traits()) {
        table.accept({1, ticket, 100}, incoming, t, {7}, now);
    }
    void pass(int64_t ms) {
        now += ms * kMs;
        table.expire(now);
    }

    Recorder fx;
    ConnectionTable table{rules(), fx};
    int64_t now = 5'000'000'000;
};

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

// ---- peer to peer

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

// ---- anything may happen

// Random operations of a few sessions, compared with a plain list of which requests should meet, and with what must
// hold at all times: every ticket is answered once, nothing is said to the dead, nothing is left in the end.
class ConnectionModelTest : public ::testing::TestWithParam<uint32_t> {};

struct ModelRequest {
    Party party;
    std::string key;
    int64_t grace_end;
};

TEST_P(ConnectionModelTest, EveryTicketIsAnsweredOnceAndWaitersMeetRequestsInOrder) {
    std::mt19937 random(GetParam());
    const auto pick = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
    Recorder fx;
    ConnectionRules rules;
    rules.grace_ns = 100 * kMs;
    rules.confirm_ns = 300 * kMs;
    rules.max_incoming = 1000;
    ConnectionTable table(rules, fx);
    int64_t now = 1;
    uint64_t next_session = 1;
    uint32_t next_ticket = 1;
    std::vector<uint64_t> alive;
    std::set<std::pair<uint64_t, uint32_t>> open;  // tickets that want an answer
    std::vector<std::pair<Party, uint64_t>> incomings, unconfirmed;
    std::vector<ModelRequest> waits, held;
    std::map<uint64_t, int> joined_sides;

    const auto address = [&](uint32_t i) {
        EndAddress a;
        a.host.bytes[5] = static_cast<uint8_t>(i % 2);
        a.discriminator_len = 1;
        a.discriminator[0] = static_cast<uint8_t>('a' + i % 3);
        return a;
    };
    const auto key_of = [](const EndAddress& a) {
        return std::to_string(a.host.bytes[5]) + static_cast<char>(a.discriminator[0]);
    };
    const auto new_end = [&](uint64_t session) {
        End e;
        e.party = {session, next_ticket++, session};
        e.domain = 1;
        e.local = address(pick(6));
        e.traits.reliability = 2;
        open.insert({session, e.party.ticket});
        return e;
    };
    const auto forget = [](std::vector<ModelRequest>& list, const Party& p) {
        std::erase_if(list, [&](const ModelRequest& r) {
            return r.party.session == p.session && r.party.ticket == p.ticket;
        });
    };
    const auto drain = [&] {
        for (; !fx.events.empty();) {
            const Event e = fx.take();
            ASSERT_TRUE(std::find(alive.begin(), alive.end(), e.who.session) != alive.end())
                << "said to the dead: " << e.what;
            ASSERT_EQ(open.erase({e.who.session, e.who.ticket}), 1u)
                << "answered twice or unasked: " << e.what;
            forget(held, e.who);
            forget(waits, e.who);
            if (e.what == "incoming") incomings.push_back({e.who, e.number});
            if (e.what == "joined" && e.side == 0) unconfirmed.push_back({e.who, e.number});
            if (e.what == "joined") {
                joined_sides[e.number] += 1;
                ASSERT_LE(joined_sides[e.number], 2);
            }
        }
    };

    for (int step = 0; step < 4000; ++step) {
        if (alive.size() < 2 || (alive.size() < 6 && pick(20) == 0)) alive.push_back(next_session++);
        const uint64_t session = alive[pick(static_cast<uint32_t>(alive.size()))];
        switch (pick(12)) {
            case 0:
            case 1: {
                const End e = new_end(session);
                const auto first = std::find_if(held.begin(), held.end(),
                                                [&](const auto& r) { return r.key == key_of(e.local); });
                const bool expects = first != held.end();
                waits.push_back({e.party, key_of(e.local), 0});
                const size_t before = incomings.size();
                table.wait(e);
                if (expects) {
                    ASSERT_EQ(fx.events.size(), 1u);
                    ASSERT_EQ(fx.events[0].what, "incoming");
                    const Party met = first->party;
                    drain();
                    forget(held, met);
                    ASSERT_EQ(incomings.size(), before + 1);
                }
                break;
            }
            case 2:
            case 3: {
                const End e = new_end(session);
                const EndAddress remote = address(pick(6));
                const auto first = std::find_if(waits.begin(), waits.end(),
                                                [&](const auto& r) { return r.key == key_of(remote); });
                if (first == waits.end()) {
                    held.push_back({e.party, key_of(remote), now + rules.grace_ns});
                    table.request(e, remote, kNever, now);
                    ASSERT_TRUE(fx.events.empty());
                } else {
                    const Party expected = first->party;
                    table.request(e, remote, now + pick(400) * kMs, now);
                    ASSERT_EQ(fx.events.size(), 1u);
                    ASSERT_EQ(fx.events[0].who.ticket, expected.ticket)
                        << "waiters are served in their order";
                }
                break;
            }
            case 4:
            case 5: {
                const End e = new_end(session);
                table.peer(e, address(pick(6)), pick(3) == 0 ? kNever : now + pick(400) * kMs, now);
                break;
            }
            case 6:
            case 7:
                if (!incomings.empty()) {
                    const size_t i = pick(static_cast<uint32_t>(incomings.size()));
                    const auto [owner, number] = incomings[i];
                    incomings.erase(incomings.begin() + static_cast<long>(i));
                    if (pick(4) == 0) {
                        ASSERT_EQ(table.reject(owner, number), Status::ok);
                    } else {
                        const Party who{owner.session, next_ticket++, owner.context};
                        open.insert({who.session, who.ticket});
                        ViTraits t;
                        t.reliability = 2;
                        table.accept(who, number, t, {}, now);
                    }
                }
                break;
            case 8:
                if (!unconfirmed.empty()) {
                    const auto [who, number] = unconfirmed.back();
                    unconfirmed.pop_back();
                    table.confirm(who.session, number);
                }
                break;
            case 9:
                if (!open.empty()) {
                    auto it = open.begin();
                    std::advance(it, pick(static_cast<uint32_t>(open.size())));
                    const auto [s, ticket] = *it;
                    const Party canceller{s, next_ticket++, 0};
                    const auto how = table.cancel(canceller, ticket);
                    if (how == ConnectionTable::Cancelled::done) {
                        open.erase({s, ticket});
                        forget(waits, {s, ticket, 0});
                        forget(held, {s, ticket, 0});
                    } else if (how == ConnectionTable::Cancelled::later) {
                        open.insert({canceller.session, canceller.ticket});
                    }
                }
                break;
            case 10: {
                now += pick(60) * kMs;
                table.expire(now);
                drain();
                for (const auto& r : held)
                    ASSERT_GT(r.grace_end, now) << "a request is held beyond its grace";
                break;
            }
            case 11:
                if (pick(6) == 0 && alive.size() > 2) {
                    std::erase(alive, session);
                    std::erase_if(open, [&](const auto& t) { return t.first == session; });
                    const auto dead = [&](const auto& r) { return r.party.session == session; };
                    std::erase_if(waits, dead);
                    std::erase_if(held, dead);
                    std::erase_if(incomings, [&](const auto& i) { return i.first.session == session; });
                    std::erase_if(unconfirmed, [&](const auto& i) { return i.first.session == session; });
                    table.session_ended(session, now);
                    // Requests that had met it are held again; the plain lists need not follow them further.
                    drain();
                    now += rules.grace_ns;
                    table.expire(now);
                    drain();
                }
                break;
        }
        drain();
        if (HasFatalFailure()) return;
        size_t tickets = 0;
        for (const auto& [s, n] : fx.open) tickets += static_cast<size_t>(n);
        ASSERT_LE(tickets, open.size());
    }
    while (!alive.empty()) {
        const uint64_t session = alive.back();
        alive.pop_back();
        table.session_ended(session, now);
        fx.events.clear();
    }
    EXPECT_EQ(table.counts(), ConnectionTable::Counts{});
    EXPECT_EQ(table.next_deadline(), kNever);
    EXPECT_TRUE(fx.shared.empty());
    for (const auto& [s, n] : fx.open) EXPECT_EQ(n, 0) << "session " << s;
}

INSTANTIATE_TEST_SUITE_P(Seeds, ConnectionModelTest, ::testing::Range(1u, 31u));

}  // namespace
}  // namespace viaduct::kagent
