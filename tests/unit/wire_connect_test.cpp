// SPDX-License-Identifier: BSD-2-Clause
// The hand-shake: which requests meet, what each end is told, and that no end is ever half open.
#include <gtest/gtest.h>

#include "providers/wire/bytes.hpp"
#include "providers/wire/link.hpp"
#include "tests/wire/model.hpp"

namespace viaduct::wire {
namespace {

using test::address;
using test::end_address;
using test::kSecond;
using test::Pair;
using test::Plan;

Tuning tuning(uint32_t max_frame = 1460) {
    Tuning t;
    t.max_frame = max_frame;
    return t;
}

struct Meeting : Pair {
    explicit Meeting(uint64_t seed = 1, Tuning t = tuning())
        : Pair(seed, t, Plan{}, Plan{}, VIP_SERVICE_RELIABLE_DELIVERY) {}

    void request(Time limit = kSecond) {
        a.link = a.node.request(&a, end_address(1, "me"), end_address(2, "here"), traits, wire.now + limit,
                                wire.now);
    }
    void accept() {
        Status why = Status::ok;
        b.link = b.node.accept(b.incoming_id, &b, traits, wire.now, &why);
        accept_status = why;
    }
    LinkReport report(const test::Station& s) const {
        LinkReport r;
        EXPECT_TRUE(s.node.report(s.link, &r));
        return r;
    }
    Status accept_status = Status::ok;
};

TEST(WireConnect, RequestAcceptConfirm) {
    Meeting m;
    m.b.node.listen(end_address(2, "here"), &m.b, m.wire.now);
    m.request();
    m.wire.run_for(kSecond / 10);
    EXPECT_EQ(m.b.requests_heard, 1) << "copies of a request are one request";
    EXPECT_EQ(m.b.listener_cookie, &m.b);
    EXPECT_EQ(m.b.incoming_from, end_address(1, "me"));
    EXPECT_FALSE(m.a.is_connected);
    m.accept();
    m.wire.run_for(kSecond / 10);
    EXPECT_TRUE(m.a.is_connected);
    EXPECT_TRUE(m.b.is_connected);
    EXPECT_EQ(m.report(m.a).send_frame, 1460u);
    EXPECT_EQ(m.report(m.b).send_frame, 1460u);
    EXPECT_EQ(m.report(m.b).peer, address(1));
}

TEST(WireConnect, NoProgramWaitsThere) {
    Meeting m;
    m.b.node.listen(end_address(2, "elsewhere"), &m.b, m.wire.now);
    m.request(10 * kSecond);
    const Time began = m.wire.now;
    EXPECT_TRUE(m.wire.run(began + kSecond, [&] { return m.a.failure.has_value(); }));
    EXPECT_EQ(*m.a.failure, Status::no_match);
    EXPECT_GE(m.wire.now - began, Tuning{}.no_match_grace);
    EXPECT_LE(m.wire.now - began, 2 * Tuning{}.no_match_grace);
    EXPECT_EQ(m.a.node.links_in_use(), 0u);
}

TEST(WireConnect, AListenerThatComesWithinTheGraceIsFound) {
    Meeting m;
    m.request(10 * kSecond);
    m.wire.run_for(60'000'000);
    m.b.node.listen(end_address(2, "here"), &m.b, m.wire.now);
    m.wire.run_for(100'000'000);
    EXPECT_EQ(m.b.requests_heard, 1);
    EXPECT_FALSE(m.a.failure);
    m.wire.run_for(kSecond);
    EXPECT_FALSE(m.a.failure) << "a program has the request: no more answers of no match";
}

// A program that only looks in, as VipConnectWait with a timeout of zero does.
struct LooksIn : Meeting {
    bool look(const char* at = "here") {
        const int before = b.requests_heard;
        b.node.unlisten(b.node.listen(end_address(2, at), &b, wire.now));
        return b.requests_heard != before;
    }
    LinkId request_to(const char* name, Time limit = kSecond) {
        return a.node.request(&a, end_address(1, "me"), end_address(2, name), traits, wire.now + limit,
                              wire.now);
    }
};

TEST(WireConnect, ARequestIsKeptForAListenerThatOnlyLooksIn) {
    LooksIn m;
    EXPECT_FALSE(m.look());
    m.request(10 * kSecond);
    m.wire.run_for(90'000'000);
    EXPECT_FALSE(m.look("elsewhere"));
    EXPECT_TRUE(m.look());
    EXPECT_FALSE(m.look()) << "one request is one request";
    EXPECT_EQ(m.b.listener_cookie, &m.b);
    EXPECT_EQ(m.b.incoming_from, end_address(1, "me"));
    m.wire.run_for(2 * kSecond);
    EXPECT_FALSE(m.a.failure) << "it has been told that a program has its request";
    EXPECT_FALSE(m.look());
    m.accept();
    m.wire.run_for(kSecond / 10);
    EXPECT_TRUE(m.a.is_connected && m.b.is_connected);
}

TEST(WireConnect, ARequestIsKeptNoLongerThanItsRequesterWaits) {
    LooksIn m;
    m.request(10 * kSecond);
    ASSERT_TRUE(m.wire.run(m.wire.now + kSecond, [&] { return m.a.failure.has_value(); }));
    EXPECT_EQ(*m.a.failure, Status::no_match);
    EXPECT_FALSE(m.look());
    m.wire.run_for(5 * kSecond);
    EXPECT_FALSE(m.look());
}

// Its answers are lost, so it goes on asking; what has been kept long enough is not kept anew by a copy.
TEST(WireConnect, CopiesDoNotProlongTheTimeARequestIsKept) {
    LooksIn m;
    m.wire.tap = [](std::byte*, uint32_t&, const NicAddress& from) { return from == address(1); };
    m.request(10 * kSecond);
    m.wire.run_for(2 * kSecond);
    EXPECT_FALSE(m.a.failure);
    EXPECT_FALSE(m.look());
    m.wire.tap = nullptr;
    m.b.node.listen(end_address(2, "here"), &m.b, m.wire.now);
    ASSERT_TRUE(m.wire.run(m.wire.now + kSecond, [&] { return m.b.requests_heard == 1; }));
    EXPECT_EQ(m.b.node.connects_pending(), 0u) << "it is with the listener";
}

TEST(WireConnect, PendingConnectsAreTakenInTheirOrder) {
    LooksIn m;
    const LinkId first = m.request_to("here"), other = m.request_to("there"), second = m.request_to("here");
    m.wire.run_for(10'000'000);
    ASSERT_TRUE(m.look());
    m.accept();
    LinkReport r;
    m.wire.run_for(10'000'000);
    ASSERT_TRUE(m.a.node.report(first, &r));
    EXPECT_EQ(r.state, static_cast<uint32_t>(LinkState::connected));
    ASSERT_TRUE(m.look());
    m.accept();
    m.wire.run_for(10'000'000);
    ASSERT_TRUE(m.a.node.report(second, &r));
    EXPECT_EQ(r.state, static_cast<uint32_t>(LinkState::connected));
    ASSERT_TRUE(m.a.node.report(other, &r));
    EXPECT_EQ(r.state, static_cast<uint32_t>(LinkState::requesting));
}

TEST(WireConnect, ARequestWhoseSenderHasGivenUpIsNotKept) {
    LooksIn m;
    const LinkId id = m.request_to("here");
    m.request_to("there", 30'000'000);
    m.wire.run_for(20'000'000);
    EXPECT_EQ(m.b.node.connects_pending(), 2u);
    m.a.node.disconnect(id, m.wire.now);
    m.wire.run_for(1'000'000);
    EXPECT_FALSE(m.look());
    EXPECT_EQ(m.b.node.connects_pending(), 1u);
    m.wire.run_for(20'000'000);
    EXPECT_TRUE(m.a.failure) << "its time is up";
    EXPECT_FALSE(m.look("there"));
    EXPECT_EQ(m.b.node.connects_pending(), 0u);
}

// What a listener takes at the last moment has no requester any more when the last answer before it is late.
TEST(WireConnect, ARequesterThatTakesNoMatchWithdrawsItsRequest) {
    LooksIn m;
    std::vector<std::byte> no_match;
    m.wire.tap = [&](std::byte* frame, uint32_t& bytes, const NicAddress& from) {
        if (from == address(1)) return true;
        if (static_cast<Kind>(load8(frame + 1)) != Kind::no_match) return false;
        no_match.assign(frame, frame + bytes);
        return true;
    };
    m.request(10 * kSecond);
    m.wire.run_for(95'000'000);
    ASSERT_TRUE(m.look());
    m.wire.run_for(15'000'000);
    ASSERT_FALSE(m.a.failure);
    EXPECT_TRUE(m.b.node.still_waits(m.b.incoming_id, m.wire.now));
    m.a.node.input(no_match, address(2), m.wire.now);
    ASSERT_TRUE(m.a.failure);
    EXPECT_EQ(*m.a.failure, Status::no_match);
    m.wire.run_for(1'000'000);
    m.accept();
    EXPECT_EQ(m.b.link, 0u) << "at once";
    EXPECT_EQ(m.accept_status, Status::timeout);
    EXPECT_FALSE(m.b.node.still_waits(m.b.incoming_id, m.wire.now));
}

TEST(WireConnect, ARequestThatIsNotRepeatedWaitsNoLonger) {
    Meeting m;
    m.b.node.listen(end_address(2, "here"), &m.b, m.wire.now);
    m.request(10 * kSecond);
    ASSERT_TRUE(m.wire.run(m.wire.now + kSecond, [&] { return m.b.requests_heard == 1; }));
    m.wire.run_for(2 * kSecond);
    EXPECT_TRUE(m.b.node.still_waits(m.b.incoming_id, m.wire.now)) << "it is repeated until it is decided";
    m.wire.weather.lose = 1;  // its host has died
    for (Time waited = 0; waited < Tuning{}.request_silence + 100'000'000; waited += 50'000'000) {
        m.wire.run_for(50'000'000);
        m.b.node.advance(m.wire.now);
    }
    EXPECT_FALSE(m.b.node.still_waits(m.b.incoming_id, m.wire.now));
    m.wire.weather.lose = 0;  // it has not: the next copy is a request as any other
    m.b.node.listen(end_address(2, "here"), &m.b, m.wire.now);
    ASSERT_TRUE(m.wire.run(m.wire.now + kSecond, [&] { return m.b.requests_heard == 2; }));
    m.accept();
    EXPECT_TRUE(m.wire.run(m.wire.now + kSecond, [&] { return m.a.is_connected && m.b.is_connected; }));
}

TEST(WireConnect, OthersCannotTakeARequestBack) {
    LooksIn m;
    uint64_t nonce = 0;
    m.wire.tap = [&](std::byte* frame, uint32_t&, const NicAddress& from) {
        if (from == address(1)) nonce = load64(frame + kHeaderBytes);
        return true;
    };
    m.request_to("here");
    m.wire.run_for(10'000'000);
    std::byte frame[kHeaderBytes + kAnswerBytes] = {};
    Header h;
    h.kind = Kind::withdraw;
    h.length = kAnswerBytes;
    write_answer(frame + kHeaderBytes, {nonce, 0, 0});
    seal(frame, h);
    m.b.node.input(frame, address(9), m.wire.now);
    write_answer(frame + kHeaderBytes, {nonce ^ 1, 0, 0});
    seal(frame, h);
    m.b.node.input(frame, address(1), m.wire.now);
    EXPECT_TRUE(m.look());
}

TEST(WireConnect, AHostileCrowdCannotFillMemoryWithRequests) {
    LooksIn m;
    const uint32_t most = m.b.node.tuning().pending_connects;
    std::byte frame[kHeaderBytes + kConnectBytes] = {};
    for (uint32_t i = 1; i <= 10 * most; ++i) {
        Connect c;
        c.nonce = i;
        c.local = end_address(3, "me");
        c.remote = end_address(2, std::to_string(i).c_str());
        write_connect(frame + kHeaderBytes, c);
        Header h;
        h.kind = Kind::request;
        h.source = i;
        h.length = kConnectBytes;
        seal(frame, h);
        m.b.node.input(frame, address(3), m.wire.now);
    }
    EXPECT_EQ(m.b.node.connects_pending(), most);
    EXPECT_FALSE(m.look("1")) << "the oldest have made room";
    EXPECT_TRUE(m.look(std::to_string(10 * most).c_str()));
    m.wire.run_for(1'000'000);  // the answers to all of them leave the wire
    m.request();
    m.wire.run_for(5'000'000);
    EXPECT_TRUE(m.look());
}

TEST(WireConnect, ADeadHostEndsInTimeoutAtTheDeadline) {
    Meeting m;
    m.wire.weather.lose = 1;
    m.request(kSecond);
    const Time began = m.wire.now;
    ASSERT_TRUE(m.wire.run(began + 2 * kSecond, [&] { return m.a.failure.has_value(); }));
    EXPECT_EQ(*m.a.failure, Status::timeout);
    EXPECT_EQ(m.wire.now - began, kSecond);
}

// A host on which nothing has the port that requests go to, and which says so.
struct ClosedPort : Meeting {
    explicit ClosedPort(Tuning t = tuning()) : Meeting(1, t) {
        wire.tap = [this](std::byte*, uint32_t&, const NicAddress&) { return !closed; };
        a.port.refuses = [this](const NicAddress& to, Question&) { return closed && to == address(2); };
    }
    // How long the request took.
    Time ask(Time limit, Time at_most = 10 * kSecond) {
        const Time began = wire.now;
        a.link = a.node.request(&a, end_address(1, "me"), end_address(2, "here"), traits,
                                limit == kNoTime ? kNoTime : wire.now + limit, wire.now);
        return until_failed(at_most) ? wire.now - began : kNoTime;
    }
    bool until_failed(Time at_most) {
        return wire.run(wire.now + at_most, [&] { return a.failure.has_value(); });
    }
    bool closed = true;
};

TEST(WireConnect, AHostWhosePortRefusesHasNoWaiter) {
    for (const Time limit : {10 * kSecond, kNoTime}) {
        SCOPED_TRACE(limit);
        ClosedPort m;
        const Time took = m.ask(limit);
        ASSERT_TRUE(m.a.failure);
        EXPECT_EQ(*m.a.failure, Status::no_match);
        EXPECT_GE(took, Tuning{}.refusal_grace);
        EXPECT_LE(took, Tuning{}.refusal_grace + Tuning{}.max_try);
        EXPECT_EQ(m.a.node.links_in_use(), 0u);
    }
}

TEST(WireConnect, APortThatRefusesIsToldByTheDeadlineToo) {
    ClosedPort m;
    EXPECT_EQ(m.ask(25'000'000), 25'000'000);
    EXPECT_EQ(*m.a.failure, Status::no_match) << "two questions have been refused by then";
}

TEST(WireConnect, OneRefusalSaysNothing) {
    ClosedPort m;
    m.a.port.refuses = [](const NicAddress&, Question& q) { return q.number == 1; };
    EXPECT_EQ(m.ask(kSecond), kSecond);
    EXPECT_EQ(*m.a.failure, Status::timeout);
}

// Hosts refuse a few questions at once, and then one a second.
TEST(WireConnect, RefusalsThatCameAtOnceDoNotCountWhenTheGraceIsOver) {
    ClosedPort m;
    m.a.port.refuses = [](const NicAddress&, Question& q) { return q.number < 5; };
    EXPECT_EQ(m.ask(5 * kSecond), 5 * kSecond);
    EXPECT_EQ(*m.a.failure, Status::no_match) << "by the deadline: nothing has answered";
    ClosedPort later;
    later.a.port.refuses = [&](const NicAddress&, Question& q) { return q.number < 5 || later.wire.now > 2 * kSecond; };
    const Time took = later.ask(5 * kSecond);
    EXPECT_EQ(*later.a.failure, Status::no_match);
    EXPECT_LE(took, 3 * kSecond);
    EXPECT_GT(later.wire.now, 2 * kSecond);
}

TEST(WireConnect, ADaemonThatStartsWithinTheGraceIsNotMissed) {
    for (const Time starts : {kSecond / 20, kSecond / 5, kSecond / 2, kSecond * 95 / 100}) {
        SCOPED_TRACE(starts);
        ClosedPort m;
        m.b.node.listen(end_address(2, "here"), &m.b, m.wire.now);
        m.request(10 * kSecond);
        m.wire.run_for(starts);
        m.closed = false;
        m.wire.run_for(kSecond / 2);
        EXPECT_EQ(m.b.requests_heard, 1);
        EXPECT_FALSE(m.a.failure);
    }
}

TEST(WireConnect, ARefusalCountsThatQuotesAQuestionThatHasNotBeenRefused) {
    const std::function<void(Question&)> lies[] = {
        [](Question& q) { q.nonce ^= 1; },
        [](Question& q) { q.link ^= 1 << 16; },
        [](Question& q) { q.number += 1000; },
        [](Question& q) { q.number = 0; },
    };
    for (const auto& lie : lies) {
        SCOPED_TRACE(&lie - lies);
        ClosedPort m;
        m.a.port.refuses = [&](const NicAddress&, Question& q) {
            lie(q);
            return true;
        };
        EXPECT_EQ(m.ask(kSecond), kSecond);
        EXPECT_EQ(*m.a.failure, Status::timeout);
        EXPECT_GT(m.a.port.asked, 5);
    }
}

TEST(WireConnect, AnAnswerTakesRefusalsBack) {
    ClosedPort m;
    m.request(10 * kSecond);
    m.wire.run_for(40'000'000);
    EXPECT_GE(m.a.port.asked, 3);
    m.closed = false;  // a daemon has the port now
    m.b.node.listen(end_address(2, "here"), &m.b, m.wire.now);
    m.wire.run_for(5 * kSecond);
    EXPECT_EQ(m.b.requests_heard, 1);
    EXPECT_FALSE(m.a.failure);
}

TEST(WireConnect, APortThatIsClosedForAMomentCostsNoProgramTheRequestThatItHas) {
    ClosedPort m;
    m.closed = false;
    m.b.node.listen(end_address(2, "here"), &m.b, m.wire.now);
    m.request(20 * kSecond);
    m.wire.run_for(kSecond / 10);
    ASSERT_EQ(m.b.requests_heard, 1);
    m.closed = true;  // the daemon is killed
    m.wire.run_for(kSecond / 2);
    EXPECT_FALSE(m.a.failure);
    m.wire.tap = nullptr;  // the program's own port has been there all the time
    m.accept();
    m.wire.run_for(kSecond / 10);
    EXPECT_TRUE(m.a.is_connected && m.b.is_connected);
}

TEST(WireConnect, AProgramThatHasARequestAndEndsWithItsHostIsNotWaitedFor) {
    ClosedPort m;
    m.closed = false;
    m.b.node.listen(end_address(2, "here"), &m.b, m.wire.now);
    m.request(20 * kSecond);
    m.wire.run_for(kSecond / 10);
    ASSERT_EQ(m.b.requests_heard, 1);
    m.closed = true;
    const Time began = m.wire.now;
    ASSERT_TRUE(m.until_failed(5 * kSecond));
    EXPECT_EQ(*m.a.failure, Status::no_match);
    EXPECT_GE(m.wire.now - began, 2 * Tuning{}.stale_incoming) << "no program may accept it by then";
    EXPECT_LE(m.wire.now - began, 3 * Tuning{}.stale_incoming);
}

TEST(WireConnect, ADeadlineWhileAProgramMayBeDecidingIsATimeout) {
    ClosedPort m;
    m.closed = false;
    m.b.node.listen(end_address(2, "here"), &m.b, m.wire.now);
    m.request(kSecond);
    m.wire.run_for(kSecond / 10);
    ASSERT_EQ(m.b.requests_heard, 1);
    m.closed = true;
    ASSERT_TRUE(m.until_failed(2 * kSecond));
    EXPECT_EQ(*m.a.failure, Status::timeout);
}

// A host that sees a question can quote it, and a refusal has no tag.
TEST(WireConnect, WithAKeyNoRefusalEndsARequest) {
    Tuning t = tuning();
    t.key = Key{1, 2};
    ClosedPort m(t);
    EXPECT_EQ(m.ask(kSecond), kSecond);
    EXPECT_EQ(*m.a.failure, Status::timeout);
    EXPECT_EQ(m.a.port.asked, 0);
}

TEST(WireConnect, NoMatchAndThenSilenceEndsARequestWithoutDeadline) {
    Meeting m;
    const Time began = m.wire.now;
    m.a.link = m.a.node.request(&m.a, end_address(1, "me"), end_address(2, "here"), m.traits, kNoTime, m.wire.now);
    m.wire.run_for(50'000'000);
    m.wire.weather.lose = 1;
    ASSERT_TRUE(m.wire.run(began + 10 * kSecond, [&] { return m.a.failure.has_value(); }));
    EXPECT_EQ(*m.a.failure, Status::no_match);
    EXPECT_GE(m.wire.now - began, Tuning{}.no_match_silence);
    EXPECT_LE(m.wire.now - began, 2 * Tuning{}.no_match_silence);
}

TEST(WireConnect, ARejectArrivesEvenWhenItsFirstCopyIsLost) {
    Meeting m;
    m.b.node.listen(end_address(2, "here"), &m.b, m.wire.now);
    m.request(5 * kSecond);
    ASSERT_TRUE(m.wire.run(m.wire.now + kSecond, [&] { return m.b.requests_heard == 1; }));
    m.wire.weather.lose = 1;
    m.b.node.reject(m.b.incoming_id, m.wire.now);
    m.wire.weather.lose = 0;
    ASSERT_TRUE(m.wire.run(m.wire.now + kSecond, [&] { return m.a.failure.has_value(); }));
    EXPECT_EQ(*m.a.failure, Status::rejected);
    EXPECT_EQ(m.b.requests_heard, 1);
}

TEST(WireConnect, ListenersAreServedInOrderAndOnce) {
    Meeting m;
    int first = 0, second = 0;
    m.b.node.listen(end_address(2, "here"), &first, m.wire.now);
    const uint32_t ended = m.b.node.listen(end_address(2, "here"), &m.a, m.wire.now);
    m.b.node.listen(end_address(2, "here"), &second, m.wire.now);
    m.b.node.unlisten(ended);
    m.request();
    ASSERT_TRUE(m.wire.run(m.wire.now + kSecond, [&] { return m.b.requests_heard == 1; }));
    EXPECT_EQ(m.b.listener_cookie, &first);
    m.a.node.request(&m.a, end_address(1, "me"), end_address(2, "here"), m.traits, m.wire.now + kSecond,
                     m.wire.now);
    ASSERT_TRUE(m.wire.run(m.wire.now + kSecond, [&] { return m.b.requests_heard == 2; }));
    EXPECT_EQ(m.b.listener_cookie, &second);
}

TEST(WireConnect, AcceptOfARequesterThatHasLeftIsATimeout) {
    Meeting m;
    m.b.node.listen(end_address(2, "here"), &m.b, m.wire.now);
    m.request();
    ASSERT_TRUE(m.wire.run(m.wire.now + kSecond, [&] { return m.b.requests_heard == 1; }));
    m.wire.weather.lose = 1;  // it is killed: the request is not withdrawn
    m.a.node.disconnect(m.a.link, m.wire.now);
    m.wire.weather.lose = 0;
    m.accept();
    ASSERT_NE(m.b.link, 0u);
    ASSERT_TRUE(m.wire.run(m.wire.now + kSecond, [&] { return m.b.failure.has_value(); }));
    EXPECT_EQ(*m.b.failure, Status::timeout);
    EXPECT_EQ(m.b.node.links_in_use(), 0u);
    m.accept();
    EXPECT_EQ(m.b.link, 0u) << "a request is used up by its accept";
    EXPECT_EQ(m.accept_status, Status::timeout);
}

TEST(WireConnect, AcceptOfARequestThatWasTakenBackIsATimeoutAtOnce) {
    Meeting m;
    m.b.node.listen(end_address(2, "here"), &m.b, m.wire.now);
    m.request();
    ASSERT_TRUE(m.wire.run(m.wire.now + kSecond, [&] { return m.b.requests_heard == 1; }));
    m.a.node.disconnect(m.a.link, m.wire.now);
    m.wire.run_for(1'000'000);
    m.accept();
    EXPECT_EQ(m.b.link, 0u);
    EXPECT_EQ(m.accept_status, Status::timeout);
}

TEST(WireConnect, AnAcceptThatIsNeverConfirmedLeavesNoEndConnected) {
    Meeting m;
    m.b.node.listen(end_address(2, "here"), &m.b, m.wire.now);
    m.request();
    ASSERT_TRUE(m.wire.run(m.wire.now + kSecond, [&] { return m.b.requests_heard == 1; }));
    m.wire.tap = [](std::byte*, uint32_t&, const NicAddress& from) { return !(from == address(1)); };
    m.accept();
    ASSERT_TRUE(m.wire.run(m.wire.now + 3 * kSecond, [&] { return m.b.failure.has_value(); }));
    EXPECT_EQ(*m.b.failure, Status::timeout);
    EXPECT_TRUE(m.a.is_connected || m.a.how_ended);
    m.wire.run_for(kSecond);
    EXPECT_FALSE(m.a.is_connected) << "the server has told it";
}

TEST(WireConnect, PeersMeetInAnyOrder) {
    for (const Time later : {Time{0}, Time{3'000}, Time{40'000'000}, 2 * kSecond}) {
        SCOPED_TRACE(later);
        Meeting m;
        const auto call = [&](test::Station& s, uint8_t own, uint8_t other) {
            s.link = s.node.peer_request(&s, end_address(own, "same"), end_address(other, "same"), m.traits,
                                         m.wire.now + 20 * kSecond, m.wire.now);
        };
        call(m.a, 1, 2);
        m.wire.run_for(later);
        call(m.b, 2, 1);
        ASSERT_TRUE(m.wire.run(m.wire.now + kSecond, [&] { return m.a.is_connected && m.b.is_connected; }));
        m.wire.run_for(2 * kSecond);
        EXPECT_TRUE(m.a.is_connected && m.b.is_connected) << "and stay together";
        EXPECT_EQ(m.a.node.links_in_use() + m.b.node.links_in_use(), 2u);
        EXPECT_EQ(m.report(m.a).send_frame, 1460u);
    }
}

TEST(WireConnect, PeersMeetInBadWeather) {
    for (uint64_t seed = 1; seed <= 50; ++seed) {
        SCOPED_TRACE(seed);
        Meeting m(seed);
        m.wire.weather.lose = 0.3;
        m.wire.weather.repeat = 0.3;
        m.wire.weather.reorder = 0.3;
        m.wire.weather.reorder_by = 30'000'000;
        m.a.link = m.a.node.peer_request(&m.a, end_address(1, "x"), end_address(2, "y"), m.traits,
                                         m.wire.now + 20 * kSecond, m.wire.now);
        m.b.link = m.b.node.peer_request(&m.b, end_address(2, "y"), end_address(1, "x"), m.traits,
                                         m.wire.now + 20 * kSecond, m.wire.now);
        ASSERT_TRUE(
            m.wire.run(m.wire.now + 20 * kSecond, [&] { return m.a.is_connected && m.b.is_connected; }));
        EXPECT_FALSE(m.a.failure || m.b.failure);
    }
}

TEST(WireConnect, APartnerThatIsSilentMakesRoomForTheNextOne) {
    Meeting m;
    const auto call = [&](test::Station& s, uint8_t own, uint8_t other) {
        s.link = s.node.peer_request(&s, end_address(own, "x"), end_address(other, "x"), m.traits, kNoTime, m.wire.now);
    };
    bool deaf = true;
    m.wire.tap = [&](std::byte* frame, uint32_t&, const NicAddress& from) {
        if (from == address(1)) return !deaf;
        return Kind{load8(frame + kKindAt)} != Kind::reset;  // a program that is gone says nothing
    };
    call(m.a, 1, 2);
    call(m.b, 2, 1);
    m.wire.run_for(20'000'000);  // a knows it, and it has heard nothing
    m.b.node.disconnect(m.b.link, m.wire.now);
    m.wire.run_for(kSecond / 10);
    deaf = false;
    call(m.b, 2, 1);
    ASSERT_TRUE(m.wire.run(m.wire.now + 3 * kSecond, [&] { return m.a.is_connected && m.b.is_connected; }));
    EXPECT_FALSE(m.a.failure || m.b.failure);
    EXPECT_EQ(m.a.port.asked + m.b.port.asked, 0) << "peers wait for each other: nothing listens";
}

TEST(WireConnect, PeersThatDifferAreBothTold) {
    Meeting m;
    ViTraits other = m.traits;
    other.max_transfer = 5;
    m.a.link =
        m.a.node.peer_request(&m.a, end_address(1, "x"), end_address(2, "x"), m.traits, kNoTime, m.wire.now);
    m.b.link =
        m.b.node.peer_request(&m.b, end_address(2, "x"), end_address(1, "x"), other, kNoTime, m.wire.now);
    ASSERT_TRUE(m.wire.run(m.wire.now + kSecond, [&] { return m.a.failure && m.b.failure; }));
    EXPECT_EQ(*m.a.failure, Status::mismatch_mtu);
    EXPECT_EQ(*m.b.failure, Status::mismatch_mtu);
}

TEST(WireConnect, PeersAndServersDoNotMeet) {
    Meeting m;
    m.b.node.listen(end_address(2, "here"), &m.b, m.wire.now);
    m.a.link = m.a.node.peer_request(&m.a, end_address(1, "here"), end_address(2, "here"), m.traits,
                                     m.wire.now + kSecond, m.wire.now);
    ASSERT_TRUE(m.wire.run(m.wire.now + 2 * kSecond, [&] { return m.a.failure.has_value(); }));
    EXPECT_EQ(*m.a.failure, Status::timeout);
    EXPECT_EQ(m.b.requests_heard, 0);
}

TEST(WireConnect, TheLargestFrameThatPassesIsFound) {
    for (const uint32_t limit : {9000u, 8000u, 4056u, 2000u, 1400u, 1000u, 600u}) {
        SCOPED_TRACE(limit);
        Meeting m(1, tuning(9000));
        m.wire.weather.path_limit = limit;
        ASSERT_TRUE(m.connect());
        m.wire.run_for(kSecond);
        for (const uint32_t found : {m.report(m.a).send_frame, m.report(m.b).send_frame}) {
            EXPECT_LE(found, limit);
            EXPECT_GE(found, kMinFrame);
            EXPECT_GE(found, limit == 9000 ? 9000u : limit / 2);
        }
    }
}

// Sizes that do not pass cost one more try, not one for each of them.
TEST(WireConnect, ASmallPathIsFoundWithTheSecondTry) {
    for (const uint32_t limit : {1486u, 1460u, 1400u, 600u}) {
        SCOPED_TRACE(limit);
        Meeting m(1, tuning(8986));
        m.wire.weather.path_limit = limit;
        const Time began = m.wire.now;
        ASSERT_TRUE(m.connect());
        EXPECT_LE(m.wire.now - began, 3 * Tuning{}.first_try);
        m.wire.run_for(kSecond / 10);
        for (const uint32_t found : {m.report(m.a).send_frame, m.report(m.b).send_frame}) {
            EXPECT_LE(found, limit);
            EXPECT_GE(found, limit > 1000 ? limit * 9 / 10 : kMinFrame - 1);
        }
    }
}

// A path that shrinks below the frames that are under way ends a reliable connection, and says so.
TEST(WireConnect, APathThatShrinksEndsTheConnectionInItsTime) {
    Meeting m(1, tuning(8986));
    m.a.plan_out.rdma = m.b.plan_in.rdma = false;
    m.a.plan_out.largest = m.b.plan_in.largest = 100'000;
    ASSERT_TRUE(m.connect());
    m.wire.weather.path_limit = 1486;
    const Time began = m.wire.now;
    ASSERT_TRUE(m.wire.run(began + 10 * kSecond, [&] {
        m.a.work(m.a.posted + 8, m.wire.now);
        return m.a.how_ended.has_value();
    }));
    EXPECT_EQ(*m.a.how_ended, Ended::gave_up);
    EXPECT_EQ(m.a.last_outcome, Outcome::gave_up);
    EXPECT_LE(m.wire.now - began, Tuning{}.give_up + kSecond);
}

TEST(WireConnect, TwoEndsOfDifferentSizesUseTheSmaller) {
    test::SimulatedWire wire(1);
    Plan plan;
    test::Station small(wire, 1, tuning(1460), plan, plan), large(wire, 2, tuning(9000), plan, plan);
    ViTraits traits;
    traits.reliability = VIP_SERVICE_RELIABLE_DELIVERY;
    small.link =
        small.node.peer_request(&small, end_address(1, "x"), end_address(2, "x"), traits, kNoTime, wire.now);
    large.link =
        large.node.peer_request(&large, end_address(2, "x"), end_address(1, "x"), traits, kNoTime, wire.now);
    ASSERT_TRUE(wire.run(wire.now + kSecond, [&] { return small.is_connected && large.is_connected; }));
    LinkReport r;
    ASSERT_TRUE(large.node.report(large.link, &r));
    EXPECT_LE(r.send_frame, 1460u);
}

TEST(WireConnect, NothingIsReachedWithoutTheHandshake) {
    Meeting m;
    ASSERT_TRUE(m.connect());
    const LinkId good = m.b.link;
    std::byte frame[256] = {};
    const auto try_frame = [&](uint32_t destination, uint32_t source, uint8_t from) {
        Header h;
        h.kind = Kind::send;
        h.flags = kFlagLast;
        h.destination = destination;
        h.source = source;
        h.length = kMessageBytes + 4;
        write_message(frame + kHeaderBytes, {0, 0, 4, 0});
        for (uint32_t sequence = 0; sequence < 64; ++sequence) {
            h.sequence = sequence * 0x04000000u;
            seal(frame, h);
            m.b.node.input({frame, sizeof frame}, address(from), m.wire.now);
        }
    };
    try_frame(good, m.a.link, 9);            // the right ids from the wrong place
    try_frame(good, m.a.link ^ 0x10000, 1);  // a wrong id of the sender
    try_frame(good ^ 0x10000, m.a.link, 1);  // another generation
    try_frame(good + 1, m.a.link, 1);        // another link
    try_frame(0xFFFFFFFF, m.a.link, 1);
    EXPECT_EQ(m.b.messages_in, 0u);
    EXPECT_TRUE(m.b.is_connected);
    EXPECT_EQ(m.b.wrong, "");
    EXPECT_GE(m.b.node.counters().wrong_peer, 128u);
    EXPECT_GE(m.b.node.counters().unknown_link, 192u);
}

TEST(WireConnect, AnIdIsNotUsedAgainSoon) {
    Meeting m;
    std::vector<LinkId> seen;
    for (int i = 0; i < 200; ++i) {
        const LinkId id =
            m.a.node.request(&m.a, end_address(1, "x"), end_address(2, "x"), m.traits, kNoTime, m.wire.now);
        EXPECT_EQ(std::count(seen.begin(), seen.end(), id), 0);
        seen.push_back(id);
        m.a.node.disconnect(id, m.wire.now);
    }
}

TEST(WireConnect, AllLinksTakenIsSaidAtOnce) {
    Tuning t = tuning();
    t.max_links = 3;
    Meeting m(1, t);
    for (int i = 0; i < 3; ++i)
        EXPECT_NE(
            m.a.node.request(&m.a, end_address(1, "x"), end_address(2, "x"), m.traits, kNoTime, m.wire.now),
            0u);
    EXPECT_EQ(m.a.node.request(&m.a, end_address(1, "x"), end_address(2, "x"), m.traits, kNoTime, m.wire.now),
              0u);
}

TEST(WireConnect, AnAcceptThatFindsNoLinkLeavesTheRequestWaiting) {
    Tuning t = tuning();
    t.max_links = 1;
    Meeting m(1, t);
    m.b.node.listen(end_address(2, "here"), &m.b, m.wire.now);
    m.request();
    m.wire.run_for(kSecond / 20);
    const LinkId other =
        m.b.node.request(&m.b, end_address(2, "x"), end_address(7, "x"), m.traits, kNoTime, m.wire.now);
    ASSERT_NE(other, 0u);
    m.accept();
    EXPECT_EQ(m.accept_status, Status::out_of_resources);
    m.wire.run_for(kSecond / 20);
    m.b.node.disconnect(other, m.wire.now);
    m.accept();
    EXPECT_EQ(m.accept_status, Status::ok);
    m.wire.run_for(kSecond / 20);
    EXPECT_TRUE(m.a.is_connected);
    EXPECT_TRUE(m.b.is_connected);
}

TEST(WireConnect, ANodeTalksToItself) {
    test::SimulatedWire wire(1);
    Plan plan;
    test::Station s(wire, 1, tuning(), plan, plan);
    ViTraits traits;
    traits.reliability = VIP_SERVICE_RELIABLE_DELIVERY;
    const LinkId one =
        s.node.peer_request(&s, end_address(1, "x"), end_address(1, "x"), traits, kNoTime, wire.now);
    wire.run_for(kSecond);
    EXPECT_FALSE(s.is_connected) << "a peer does not meet itself";
    const LinkId two =
        s.node.peer_request(&s, end_address(1, "x"), end_address(1, "x"), traits, kNoTime, wire.now);
    wire.run_for(kSecond);
    LinkReport r1, r2;
    ASSERT_TRUE(s.node.report(one, &r1) && s.node.report(two, &r2));
    EXPECT_EQ(r1.state, static_cast<uint32_t>(LinkState::connected));
    EXPECT_EQ(r2.state, static_cast<uint32_t>(LinkState::connected));
}

// As over UDP: station 9 is the port of b's host that requests go to, and b answers from its own.
TEST(WireConnect, WhereAddressesHavePortsAnotherPortOfTheHostAskedMayAnswer) {
    for (const bool ports : {true, false}) {
        SCOPED_TRACE(ports);
        Tuning t = tuning();
        t.ports = ports;
        Meeting m(1, t);
        test::SimulatedWire::Port asked(m.wire, address(9));
        m.wire.attach(asked, m.b.node);
        m.b.node.listen(end_address(9, "here"), &m.b, m.wire.now);
        m.a.link = m.a.node.request(&m.a, end_address(1, "me"), end_address(9, "here"), m.traits,
                                    m.wire.now + kSecond, m.wire.now);
        m.wire.run_for(kSecond / 10);
        ASSERT_EQ(m.b.requests_heard, 1);
        EXPECT_EQ(m.b.incoming_from, end_address(1, "me"));
        m.accept();
        m.wire.run_for(kSecond / 10);
        EXPECT_EQ(m.a.is_connected, ports);
        EXPECT_EQ(m.b.is_connected, ports);
        if (ports) {
            EXPECT_EQ(m.report(m.a).peer, address(2)) << "where the connection is from then on";
        }
    }
}

}  // namespace
}  // namespace viaduct::wire
