// SPDX-License-Identifier: BSD-2-Clause
// Requests with a forged source address against a listener: they cost the program two accepts, and then nothing until
// their sender shows a cookie, which an honest requester does at once.
#include <gtest/gtest.h>

#include "tests/wire/forged_peer.hpp"
#include "tests/wire/model.hpp"

namespace viaduct::wire {
namespace {

using test::address;
using test::body_of;
using test::Bytes;
using test::end_address;
using test::kSecond;
using test::LoneNode;

Header request_header(LinkId source = LoneNode::kPeer) {
    Header h;
    h.kind = Kind::request;
    h.source = source;
    return h;
}

// The fields of a request, with the cookie behind them.
Bytes fields_of(const Connect& c, size_t bytes = 1400) {
    Bytes fields = body_of(c);
    fields.resize(bytes);
    write_cookie(fields.data(), c.cookie);
    return fields;
}

Connect request_of(const LoneNode& n, uint64_t nonce) {
    Connect c = n.introduction();
    c.nonce = nonce;
    return c;
}

void forge(LoneNode& n, uint64_t nonce) { n.put(request_header(), fields_of(request_of(n, nonce)), address(9)); }

void wait_for_request(LoneNode& n) { n.node.listen(end_address(2, "here"), &n, n.now); }

void accept_request(LoneNode& n) {
    Status why = Status::ok;
    n.link = n.node.accept(n.incoming_id, &n, n.traits, n.now, &why);
    EXPECT_EQ(why, Status::ok);
}

// Two accepts of forged requests come to nothing.
void begin_demand(LoneNode& n) {
    for (const uint64_t nonce : {uint64_t{501}, uint64_t{502}}) {
        wait_for_request(n);
        forge(n, nonce);
        accept_request(n);
        n.failure.reset();
        n.pass_time(3 * kSecond);
        ASSERT_EQ(n.failure, Status::timeout);
    }
    n.sent.clear();
}

// The cookie that the node has last asked for.
uint64_t last_cookie(const LoneNode& n) {
    if (n.sent.empty() || n.sent.back().frame.header.kind != Kind::prove) return 0;
    return read_prove(n.sent.back().frame).cookie;
}

TEST(WireForgedRequests, NoneReachesTheProgramOnceAProofIsDemanded) {
    LoneNode n;
    begin_demand(n);
    wait_for_request(n);
    const uint32_t before = n.requests;
    for (uint64_t nonce = 600; nonce < 700; ++nonce) {
        forge(n, nonce);
        n.pass_time(kSecond / 20);
    }
    EXPECT_EQ(n.requests, before);
    EXPECT_EQ(n.count(Kind::prove), 100u);
    EXPECT_EQ(n.sent.size(), 100u) << "one small answer each";
    EXPECT_EQ(n.refused.size(), 100u) << "the port may have used up the listener's filter";
    EXPECT_EQ(n.node.connects_pending(), 0u);
    EXPECT_EQ(n.node.links_in_use(), 0u);
    EXPECT_EQ(n.node.counters().proofs_asked, 100u);
}

// The port has used up the filter of one listener, and the node does not see whose.
TEST(WireForgedRequests, EachListenerOfTheDiscriminatorSeesThatARequestIsRefused) {
    LoneNode n;
    begin_demand(n);
    int first = 0, second = 0, other = 0;
    n.node.listen(end_address(2, "here"), &first, n.now);
    n.node.listen(end_address(2, "here"), &second, n.now);
    n.node.listen(end_address(2, "there"), &other, n.now);
    forge(n, 600);
    EXPECT_EQ(n.refused, (std::vector<Cookie>{&first, &second}));
}

TEST(WireForgedRequests, AListenerSeesThatARequestWithoutATagIsRefused) {
    Tuning keyed;
    keyed.key = Key{1, 2};
    LoneNode n(keyed);
    wait_for_request(n);
    Bytes frame(kHeaderBytes);
    const Bytes fields = fields_of(request_of(n, 600));
    frame.insert(frame.end(), fields.begin(), fields.end());
    Header h = request_header();
    h.length = static_cast<uint16_t>(fields.size());
    seal(frame.data(), h);
    n.node.input(frame, address(9), n.now);
    EXPECT_EQ(n.requests, 0u);
    EXPECT_EQ(n.refused.size(), 1u);
    n.put(request_header(), fields);
    EXPECT_EQ(n.requests, 1u) << "an honest requester, with a tag";
}

TEST(WireForgedRequests, AListenerSeesThatThereIsNoRoomForARequest) {
    LoneNode n;
    uint64_t nonce = 600;
    for (uint32_t seen = n.requests; seen == n.requests && n.refused.empty(); ++seen) {
        wait_for_request(n);
        forge(n, ++nonce);
    }
    EXPECT_GT(n.requests, 10u);
    EXPECT_EQ(n.refused.size(), 1u);
}

TEST(WireForgedRequests, WithoutADemandARequestNeedsNoProof) {
    LoneNode n;
    wait_for_request(n);
    forge(n, 501);
    EXPECT_EQ(n.requests, 1u);
    accept_request(n);
    n.pass_time(3 * kSecond);
    wait_for_request(n);
    forge(n, 502);
    EXPECT_EQ(n.requests, 2u) << "one accept that came to nothing demands none";
    EXPECT_EQ(n.count(Kind::prove), 0u);
}

TEST(WireForgedRequests, AnHonestRequesterGetsThroughWithOneMoreRoundTrip) {
    test::Pair m(1, Tuning{}, test::Plan{}, test::Plan{}, VIP_SERVICE_RELIABLE_DELIVERY);
    for (const uint64_t nonce : {uint64_t{501}, uint64_t{502}}) {
        m.b.node.listen(end_address(2, "here"), &m.b, m.wire.now);
        Connect c;
        c.nonce = nonce;
        c.traits = m.traits;
        c.local = end_address(9, "me");
        c.remote = end_address(2, "here");
        const Bytes fields = fields_of(c);
        Bytes frame(kHeaderBytes);
        frame.insert(frame.end(), fields.begin(), fields.end());
        Header h = request_header();
        h.length = static_cast<uint16_t>(fields.size());
        seal(frame.data(), h);
        m.b.node.input(frame, address(9), m.wire.now);
        Status why = Status::ok;
        m.b.node.accept(m.b.incoming_id, &m.b, m.traits, m.wire.now, &why);
        m.b.failure.reset();
        m.wire.run_for(3 * kSecond);
        ASSERT_EQ(m.b.failure, Status::timeout);
    }
    const int heard = m.b.requests_heard;
    m.b.failure.reset();
    m.b.node.listen(end_address(2, "here"), &m.b, m.wire.now);
    const Time began = m.wire.now;
    m.a.link = m.a.node.request(&m.a, end_address(1, "me"), end_address(2, "here"), m.traits, began + kSecond, began);
    ASSERT_TRUE(m.wire.run(began + kSecond, [&] { return m.b.requests_heard != heard; }));
    EXPECT_LE(m.wire.now - began, 3 * m.wire.weather.delay) << "request, prove, request";
    EXPECT_EQ(m.b.node.counters().proofs_asked, 1u);
    Status why = Status::ok;
    m.b.link = m.b.node.accept(m.b.incoming_id, &m.b, m.traits, m.wire.now, &why);
    ASSERT_TRUE(m.wire.run(began + kSecond, [&] { return m.a.is_connected && m.b.is_connected; }));
    LinkReport r;
    ASSERT_TRUE(m.b.node.report(m.b.link, &r));
    EXPECT_EQ(r.send_frame, Tuning{}.max_frame);
}

TEST(WireForgedRequests, ACookieOfAnotherAddressOrRequestIsRefused) {
    LoneNode n;
    begin_demand(n);
    wait_for_request(n);
    const uint32_t before = n.requests;
    Connect c = request_of(n, 700);
    n.put(request_header(), fields_of(c));
    c.cookie = last_cookie(n);
    ASSERT_NE(c.cookie, 0u);
    n.put(request_header(), fields_of(c), address(3));
    n.put(request_header(LoneNode::kPeer + 1), fields_of(c));
    Connect other = c;
    ++other.nonce;
    n.put(request_header(), fields_of(other));
    EXPECT_EQ(n.requests, before);
    EXPECT_EQ(n.count(Kind::prove), 4u);
    n.put(request_header(), fields_of(c));
    EXPECT_EQ(n.requests, before + 1);
    EXPECT_EQ(n.count(Kind::pending), 1u);
}

TEST(WireForgedRequests, AnOldCookieIsReplaced) {
    LoneNode n;
    begin_demand(n);
    wait_for_request(n);
    const uint32_t before = n.requests;
    Connect c = request_of(n, 700);
    n.put(request_header(), fields_of(c));
    const uint64_t old = c.cookie = last_cookie(n);
    n.pass_time(2 * Tuning{}.cookie_life);
    n.put(request_header(), fields_of(c));
    EXPECT_EQ(n.requests, before);
    c.cookie = last_cookie(n);
    EXPECT_NE(c.cookie, 0u);
    EXPECT_NE(c.cookie, old);
    n.put(request_header(), fields_of(c));
    EXPECT_EQ(n.requests, before + 1);
}

TEST(WireForgedRequests, ARequestThatIsSentAgainWithItsCookieIsOneRequest) {
    LoneNode n;
    begin_demand(n);
    Connect c = request_of(n, 700);
    n.put(request_header(), fields_of(c));
    c.cookie = last_cookie(n);
    wait_for_request(n);
    wait_for_request(n);
    const uint32_t before = n.requests;
    n.put(request_header(), fields_of(c));
    n.put(request_header(), fields_of(c));
    EXPECT_EQ(n.requests, before + 1) << "while the program decides";
    accept_request(n);
    n.put(request_header(), fields_of(c));
    EXPECT_EQ(n.requests, before + 1) << "while the accept is out";
    n.pass_time(3 * kSecond);
    EXPECT_EQ(n.failure, Status::timeout);
    n.put(request_header(), fields_of(c));
    EXPECT_EQ(n.requests, before + 1) << "after its end";
}

// As a host without *prove* asks: no padding, so no place for a cookie.
TEST(WireForgedRequests, ARequestWithoutAPlaceForACookieIsOneWithoutAProof) {
    LoneNode n;
    wait_for_request(n);
    n.put(request_header(), body_of(request_of(n, 400)));
    EXPECT_EQ(n.requests, 1u);
    n.node.reject(n.incoming_id, n.now);
    begin_demand(n);
    wait_for_request(n);
    const uint32_t before = n.requests;
    n.put(request_header(), body_of(request_of(n, 700)));
    EXPECT_EQ(n.requests, before);
    EXPECT_NE(last_cookie(n), 0u);
}

TEST(WireForgedRequests, AnAnswerToAnUnprovedRequestIsShorterThanTheRequest) {
    LoneNode n;
    begin_demand(n);
    wait_for_request(n);
    n.put(request_header(), body_of(request_of(n, 700)));
    ASSERT_EQ(n.sent.size(), 1u);
    EXPECT_LE(n.sent[0].bytes.size(), (kHeaderBytes + kConnectBytes) / 3);
}

TEST(WireForgedRequests, WithAKeyARecordedRequestGetsAProveWithATag) {
    Tuning t;
    t.key = Key{1, 2};
    LoneNode n(t);
    begin_demand(n);
    wait_for_request(n);
    const uint32_t before = n.requests;
    Connect c = request_of(n, 700);
    n.put(request_header(), fields_of(c));
    c.cookie = last_cookie(n);
    ASSERT_NE(c.cookie, 0u);
    const Frame& prove = n.sent.back().frame;
    EXPECT_NE(prove.header.flags & kFlagTagged, 0);
    EXPECT_EQ(prove.header.pass, tag_of(*t.key, prove.header, 0, prove.fields));
    EXPECT_EQ(n.requests, before);
    n.put(request_header(), fields_of(c));
    EXPECT_EQ(n.requests, before + 1);
}

TEST(WireForgedRequests, AProofLiftsTheLimitOfTheAnswers) {
    LoneNode n;
    begin_demand(n);
    wait_for_request(n);
    Connect c = request_of(n, 700);
    const size_t least = kConnectBytes + kCookieBytes;
    n.put(request_header(), fields_of(c, least));
    c.cookie = last_cookie(n);
    n.put(request_header(), fields_of(c, least));
    accept_request(n);
    n.pass_time(kSecond * 9 / 10);
    uint64_t bytes = 0;
    for (const LoneNode::Sent& s : n.sent)
        if (s.frame.header.kind == Kind::accept) bytes += s.bytes.size();
    EXPECT_GT(bytes, 3 * (kHeaderBytes + least));
    EXPECT_GE(n.count(Kind::accept), 3u);
}

TEST(WireForgedRequests, ADemandEnds) {
    LoneNode n;
    begin_demand(n);
    wait_for_request(n);
    const uint32_t before = n.requests;
    n.pass_time(Tuning{}.proof_demand);
    n.put(request_header(), fields_of(request_of(n, 700)));
    EXPECT_EQ(n.requests, before + 1);
}

TEST(WireForgedRequests, UnprovedRequestsThatWereKeptForAListenerAreDropped) {
    LoneNode n;
    Connect c = request_of(n, 400);
    c.remote = end_address(2, "later");
    n.put(request_header(), fields_of(c), address(9));
    ASSERT_EQ(n.node.connects_pending(), 1u);
    begin_demand(n);
    EXPECT_EQ(n.node.connects_pending(), 0u);
}

// ---- the requester

TEST(WireForgedRequests, ARequesterShowsTheFirstCookieAtOnceAndALaterOneWithItsNextCopy) {
    LoneNode n;
    n.ask();
    n.sent.clear();
    n.put(n.next(Kind::prove), body_of(Prove{n.nonce + 1, 1460, 5}));
    EXPECT_TRUE(n.sent.empty()) << "of another attempt";
    n.put(n.next(Kind::prove), body_of(Prove{n.nonce, 1460, 5}));
    ASSERT_EQ(n.sent.size(), 1u);
    Connect c;
    ASSERT_EQ(n.sent[0].frame.header.kind, Kind::request);
    ASSERT_EQ(read_connect(n.sent[0].frame, &c), Flaw::none);
    EXPECT_EQ(c.cookie, 5u);
    EXPECT_EQ(c.nonce, n.nonce);
    n.put(n.next(Kind::prove), body_of(Prove{n.nonce, 1460, 6}));
    n.put(n.next(Kind::prove), body_of(Prove{n.nonce, 1460, 7}));
    EXPECT_EQ(n.sent.size(), 1u) << "cookies do not make it send more";
    n.pass_time(kSecond / 5);
    ASSERT_GT(n.sent.size(), 1u);
    ASSERT_EQ(read_connect(n.sent.back().frame, &c), Flaw::none);
    EXPECT_EQ(c.cookie, 7u);
}

TEST(WireForgedRequests, WithAKeyARequesterTakesACookieFromATaggedProveOnly) {
    Tuning t;
    t.key = Key{1, 2};
    LoneNode n(t);
    n.ask();
    n.sent.clear();
    const Bytes fields = body_of(Prove{n.nonce, 1460, 5});
    Bytes frame(kHeaderBytes);
    frame.insert(frame.end(), fields.begin(), fields.end());
    Header h = n.next(Kind::prove);
    h.length = kProveBytes;
    seal(frame.data(), h);
    n.node.input(frame, address(1), n.now);
    EXPECT_TRUE(n.sent.empty());
    n.put(n.next(Kind::prove), fields);
    ASSERT_EQ(n.sent.size(), 1u);
    Connect c;
    ASSERT_EQ(read_connect(n.sent[0].frame, &c), Flaw::none);
    EXPECT_EQ(c.cookie, 5u);
}

}  // namespace
}  // namespace viaduct::wire
