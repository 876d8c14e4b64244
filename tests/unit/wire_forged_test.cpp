// SPDX-License-Identifier: BSD-2-Clause
// What a peer cannot do to a node though it has the connection: answer what was not asked, acknowledge what was
// not sent, send beyond the window, put fragments elsewhere than they belong. And what a node does not do to its
// peer: send or ask for more than the peer has room for.
#include <gtest/gtest.h>

#include <string>

#include "tests/wire/forged_peer.hpp"

namespace viaduct::wire {
namespace {

using test::address;
using test::body_of;
using test::Bytes;
using test::end_address;
using test::LoneNode;

constexpr Time kMillisecond = 1'000'000;

// ---- requests with a forged source address

// Bytes of all frames that the node has sent, except its own peer requests.
uint64_t bytes_answered(const LoneNode& n) {
    uint64_t bytes = 0;
    for (const LoneNode::Sent& s : n.sent)
        if (s.frame.header.kind != Kind::peer_request) bytes += s.bytes.size();
    return bytes;
}

Bytes padded(Bytes fields, size_t to) {
    fields.resize(to);
    return fields;
}

TEST(WireForged, ARequestIsAnsweredWithThreeTimesItsBytesAtMost) {
    Tuning tuning;
    tuning.max_frame = kMaxFrame;
    for (const size_t bytes : {size_t{kConnectBytes}, size_t{1400}, size_t{8800}}) {
        for (const bool attended : {false, true}) {
            SCOPED_TRACE(std::to_string(bytes) + " bytes" + (attended ? ", attended" : ""));
            LoneNode n(tuning);
            n.node.listen(end_address(2, "here"), &n, n.now);
            Header h;
            h.kind = Kind::request;
            h.source = LoneNode::kPeer;
            Connect c = n.introduction();
            c.max_frame = kMaxFrame;
            c.attended = attended;
            n.put(h, padded(body_of(c), bytes));
            Status why = Status::ok;
            n.link = n.node.accept(n.incoming_id, &n, n.traits, n.now, &why);
            n.pass_time(60'000 * kMillisecond);
            EXPECT_EQ(n.failure, Status::timeout);
            EXPECT_GE(n.count(Kind::accept), 2u);
            EXPECT_LE(bytes_answered(n), 3 * (kHeaderBytes + bytes));
        }
    }
}

TEST(WireForged, APeerRequestIsAnsweredWithThreeTimesItsBytesAtMost) {
    LoneNode n;
    n.link = n.node.peer_request(&n, end_address(2, "here"), end_address(1, "me"), n.traits,
                                 n.now + 60'000 * kMillisecond, n.now);
    Header h;
    h.kind = Kind::peer_request;
    h.source = LoneNode::kPeer;
    n.put(h, body_of(n.introduction()));
    n.pass_time(59'000 * kMillisecond);
    EXPECT_GE(n.count(Kind::accept), 2u);
    EXPECT_LE(bytes_answered(n), 3 * (kHeaderBytes + kConnectBytes));
}

TEST(WireForged, EachCopyOfARequestIsAnsweredAnew) {
    LoneNode n;
    n.be_accepted();
    n.pass_time(300 * kMillisecond);
    const uint32_t before = n.count(Kind::accept);
    Header h;
    h.kind = Kind::request;
    h.source = LoneNode::kPeer;
    n.put(h, body_of(n.introduction()));
    n.pass_time(300 * kMillisecond);
    EXPECT_GT(n.count(Kind::accept), before);
    EXPECT_LE(bytes_answered(n), 2 * 3 * (kHeaderBytes + kConnectBytes));
}

// ---- answers to reads and atomics

TEST(WireForged, FencedWorkWaitsForTheReadsAndAtomicsBeforeIt) {
    for (const Operation before : {Operation::read, Operation::fetch_add}) {
        LoneNode n;
        n.connect();
        const uint32_t total = before == Operation::read ? 100 : 8;
        ASSERT_TRUE(n.post(before, total));
        ASSERT_TRUE(n.post(Operation::send, 10));
        EXPECT_EQ(n.count(Kind::send), 1u) << "without a fence it overtakes the answer";
        ASSERT_TRUE(n.post(Operation::send, 10, true));
        n.acknowledge_up_to(n.acknowledge + 2);
        n.pass_time(kMillisecond);
        EXPECT_EQ(n.count(Kind::send), 1u);
        if (before == Operation::read)
            n.put_next(Kind::read_data, body_of(ReadData{0, 0, total}, total));
        else
            n.put_next(Kind::atomic_data, body_of(AtomicData{0, 0, 5}));
        EXPECT_EQ(n.count(Kind::send), 2u);
    }
}

TEST(WireForged, NoMoreReadsAreOutThanAreAgreed) {
    Tuning tuning;
    tuning.max_reads = 2;
    LoneNode n(tuning);
    n.connect();
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(n.post(Operation::read, 50));
    n.acknowledge_up_to(n.acknowledge + 2);
    EXPECT_EQ(n.count(Kind::read_request), 2u) << "that the requests have come is no answer";
    n.put_next(Kind::read_data, body_of(ReadData{0, 0, 50}, 50));
    EXPECT_EQ(n.count(Kind::read_request), 3u);
    EXPECT_EQ(n.finished_tags, std::vector<uint32_t>{0});
}

TEST(WireForged, APeerThatAsksForMoreThanIsAgreedEndsTheConnection) {
    for (const Kind kind : {Kind::read_request, Kind::atomic_request}) {
        SCOPED_TRACE(name_of(kind));
        LoneNode n;
        n.connect();
        const auto ask = [&](uint32_t number) {
            n.put_next(kind, kind == Kind::read_request ? body_of(ReadRequest{0, 2, 8, number})
                                                        : body_of(AtomicRequest{0, 2, number, 1, 0, 1, 8}));
        };
        for (uint32_t i = 0; i < kMaxReads; ++i) ask(i);
        EXPECT_TRUE(n.is_connected);
        ask(kMaxReads);
        EXPECT_EQ(n.how_ended, Ended::protocol) << "none of its answers has been acknowledged";
    }
}

// The node has asked for 100 bytes (work 1) and for an atomic (work 2) after a send (work 0).
TEST(WireForged, AnAnswerThatWasNotAskedForEndsTheConnection) {
    constexpr uint32_t kDepth = 16;
    struct Case {
        const char* what;
        Kind kind;
        Bytes fields;
    };
    const Case cases[] = {
        {"data that leave a gap", Kind::read_data, body_of(ReadData{1, 10, 100}, 90)},
        {"data of a longer read", Kind::read_data, body_of(ReadData{1, 0, 101}, 100)},
        {"more data than asked for", Kind::read_data, body_of(ReadData{1, 0, 100}, 101)},
        {"data without a byte", Kind::read_data, body_of(ReadData{1, 0, 100}, 0)},
        {"data for a send", Kind::read_data, body_of(ReadData{0, 0, 100}, 100)},
        {"data for an atomic", Kind::read_data, body_of(ReadData{2, 0, 8}, 8)},
        {"data for a read that was not sent", Kind::read_data, body_of(ReadData{3, 0, 100}, 100)},
        {"data for work that was not posted", Kind::read_data, body_of(ReadData{4, 0, 100}, 100)},
        {"data for work in the same place of the queue", Kind::read_data, body_of(ReadData{1 + kDepth, 0, 100}, 100)},
        {"the value of a read", Kind::atomic_data, body_of(AtomicData{1, 0, 5})},
        {"the value of a send", Kind::atomic_data, body_of(AtomicData{0, 0, 5})},
        {"the value of another round of the queue", Kind::atomic_data, body_of(AtomicData{2 + kDepth, 0, 5})},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.what);
        Tuning tuning;
        tuning.max_reads = 2;
        tuning.queue_depth = kDepth;
        LoneNode n(tuning);
        n.connect();
        ASSERT_TRUE(n.post(Operation::send, 100) && n.post(Operation::read, 100) && n.post(Operation::fetch_add, 8) &&
                    n.post(Operation::read, 100));
        n.put_next(c.kind, c.fields);
        EXPECT_EQ(n.how_ended, Ended::protocol);
        EXPECT_EQ(n.result_bytes, 0u);
    }
}

TEST(WireForged, AnAnswerComesOnce) {
    LoneNode n;
    n.connect();
    ASSERT_TRUE(n.post(Operation::send, 100) && n.post(Operation::read, 100));
    n.put_next(Kind::read_data, body_of(ReadData{1, 0, 60}, 60));
    EXPECT_EQ(n.how_ended, Ended::protocol) << "of another length";

    for (const Operation asked : {Operation::read, Operation::fetch_add}) {
        LoneNode m;
        m.connect();
        // The send before it is not acknowledged: the answered work stays open.
        ASSERT_TRUE(m.post(Operation::send, 100) && m.post(asked, 8));
        const Kind kind = asked == Operation::read ? Kind::read_data : Kind::atomic_data;
        const Bytes answer = asked == Operation::read ? body_of(ReadData{1, 0, 8}, 8) : body_of(AtomicData{1, 0, 5});
        m.put_next(kind, answer);
        EXPECT_EQ(m.result_bytes, 8u);
        EXPECT_TRUE(m.is_connected);
        m.put_next(kind, answer);
        EXPECT_EQ(m.result_bytes, 8u);
        EXPECT_EQ(m.how_ended, Ended::protocol);
    }
}

TEST(WireForged, AReadOrAtomicThatCannotBeEndsTheConnectionUndone) {
    struct Case {
        const char* what;
        Kind kind;
        Bytes fields;
    };
    const Case cases[] = {
        {"a read above the limit of the VI", Kind::read_request, body_of(ReadRequest{0, 2, (1 << 20) + 1, 0})},
        {"operation 0", Kind::atomic_request, body_of(AtomicRequest{0, 2, 0, 1, 0, 0, 8})},
        {"operation 3", Kind::atomic_request, body_of(AtomicRequest{0, 2, 0, 1, 0, 3, 8})},
        {"width 2", Kind::atomic_request, body_of(AtomicRequest{0, 2, 0, 1, 0, 1, 2})},
        {"width 16", Kind::atomic_request, body_of(AtomicRequest{0, 2, 0, 1, 0, 2, 16})},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.what);
        LoneNode n;
        n.connect();
        n.put_next(c.kind, c.fields);
        EXPECT_EQ(n.how_ended, Ended::protocol);
        EXPECT_EQ(n.reads + n.atomics, 0u);
    }
}

// ---- acknowledgements

TEST(WireForged, WhatWasNotSentIsNotAcknowledged) {
    for (const bool by_a_message : {false, true}) {
        for (const uint32_t beyond : {1u, kWindow, 0x10000u}) {
            LoneNode n;
            n.connect();
            ASSERT_TRUE(n.post(Operation::send, 10) && n.post(Operation::send, 10));
            const uint32_t next = n.acknowledge + 2;
            n.acknowledge = next + beyond;
            if (by_a_message)
                n.put_next(Kind::send, body_of(Message{0, 0, 10, 0}, 10));
            else
                n.put(n.next(Kind::acknowledge), body_of(Selective{}));
            EXPECT_TRUE(n.finished_tags.empty());
            EXPECT_EQ(n.report().in_flight, 2u);
            n.acknowledge_up_to(next);
            EXPECT_EQ(n.finished_tags.size(), 2u);
            EXPECT_EQ(n.report().in_flight, 0u);
        }
    }
}

TEST(WireForged, AnOlderAcknowledgementThatComesLateChangesNothing) {
    LoneNode n;
    n.connect();
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(n.post(Operation::send, 10));
    const uint32_t first = n.acknowledge;
    n.acknowledge_up_to(first + 3);
    n.acknowledge_up_to(first + 1);
    EXPECT_EQ(n.report().in_flight, 1u);
    EXPECT_EQ(n.finished_tags.size(), 3u);
    n.acknowledge_up_to(first + 4);
    EXPECT_EQ(n.report().in_flight, 0u);
    EXPECT_EQ(n.finished_tags.size(), 4u);
}

TEST(WireForged, AFrameThatIsAcknowledgedTwiceIsCountedOnce) {
    LoneNode n;
    n.connect();
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(n.post(Operation::send, 10));
    const uint32_t first = n.acknowledge;
    Selective third;
    third.set(1);
    n.acknowledge_up_to(first, third);
    EXPECT_EQ(n.report().in_flight, 3u);
    n.acknowledge_up_to(first, third);
    EXPECT_EQ(n.report().in_flight, 3u) << "and again by the same bit";
    n.acknowledge_up_to(first + 3);
    EXPECT_EQ(n.report().in_flight, 1u) << "and again with all before it";
    n.acknowledge_up_to(first + 4);
    EXPECT_EQ(n.report().in_flight, 0u);
}

// ---- windows

// The window begins with the oldest frame that the peer misses.
TEST(WireForged, NothingIsSentBeyondTheWindowOfEitherEnd) {
    for (const bool of_the_peer : {false, true}) {
        Tuning tuning;
        if (!of_the_peer) tuning.window = 4;
        LoneNode n(tuning);
        n.window = of_the_peer ? 4 : kWindow;
        n.connect();
        for (int i = 0; i < 12; ++i) ASSERT_TRUE(n.post(Operation::send, 10));
        EXPECT_EQ(n.count(Kind::send), 4u);
        Selective all_but_the_first;
        for (uint32_t i = 0; i < 3; ++i) all_but_the_first.set(i);
        n.acknowledge_up_to(n.acknowledge, all_but_the_first);
        EXPECT_EQ(n.report().in_flight, 1u);
        EXPECT_EQ(n.count(Kind::send), 4u);
        n.acknowledge_up_to(n.acknowledge + 4);
        EXPECT_EQ(n.count(Kind::send), 8u);
    }
}

TEST(WireForged, AMessageThatGoesAtOnceKeepsToTheWindowToo) {
    Tuning tuning;
    tuning.window = 4;
    LoneNode n(tuning);
    n.connect();
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(n.post(Operation::send, 10));
    Selective all_but_the_first;
    for (uint32_t i = 0; i < 3; ++i) all_but_the_first.set(i);
    n.acknowledge_up_to(n.acknowledge, all_but_the_first);
    EXPECT_EQ(n.report().in_flight, 1u);
    const std::byte payload[10] = {};
    EXPECT_FALSE(n.node.post_at_once(n.link, n.posted, payload, nullptr, n.now));
}

TEST(WireForged, AConnectionBeginsWithFewFrames) {
    LoneNode n;
    n.connect();
    for (int i = 0; i < 40; ++i) ASSERT_TRUE(n.post(Operation::send, 10));
    EXPECT_EQ(n.count(Kind::send), 16u) << "the congestion window, not that of the peer";
}

TEST(WireForged, AFrameBeyondTheWindowIsNotKept) {
    LoneNode n;
    n.connect();
    for (const uint32_t ahead : {kWindow, kWindow + 1, 2 * kWindow, 0x7FFFFFFFu}) {
        Header h = n.next(Kind::send);
        h.sequence += ahead;
        n.put(h, body_of(Message{0, 0, 10, 0}, 10));
    }
    EXPECT_EQ(n.node.frames_early(), 0u);
    Header h = n.next(Kind::send);
    h.sequence += kWindow - 1;
    n.put(h, body_of(Message{0, 0, 10, 0}, 10));
    EXPECT_EQ(n.node.frames_early(), 1u) << "the last one within it is";
    for (uint32_t i = 0; i < 2; ++i) n.put_next(Kind::send, body_of(Message{i, 0, 10, 0}, 10));
    EXPECT_EQ(n.messages, 2u);
    EXPECT_TRUE(n.is_connected);
}

// ---- messages in fragments

// A message of 3000 bytes has begun with 1000.
TEST(WireForged, AFragmentThatDoesNotContinueItsMessageEndsTheConnection) {
    struct Case {
        const char* what;
        Kind kind;
        Message fields;
        uint32_t payload;
    };
    const Case cases[] = {
        {"a gap", Kind::send, {0, 1001, 3000, 0}, 1000},
        {"bytes that were there before", Kind::send, {0, 999, 3000, 0}, 1000},
        {"of another message", Kind::send, {1, 1000, 3000, 0}, 1000},
        {"of a longer message", Kind::send, {0, 1000, 3001, 0}, 1000},
        {"beyond the end", Kind::send, {0, 2001, 3000, 0}, 1000},
        {"without a byte", Kind::send, {0, 1000, 3000, 0}, 0},
        {"of a write", Kind::write, {0, 1000, 3000, 0}, 1000},
        {"another message begins", Kind::send, {1, 0, 3000, 0}, 1000},
        {"another message, whole", Kind::send, {1, 0, 10, 0}, 10},
        {"another write", Kind::write, {1, 0, 3000, 0}, 1000},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.what);
        LoneNode n;
        n.connect();
        n.put_next(Kind::send, body_of(Message{0, 0, 3000, 0}, 1000), 0);
        ASSERT_TRUE(n.is_connected);
        n.put_next(c.kind,
                   c.kind == Kind::send ? body_of(c.fields, c.payload) : body_of(c.fields, Target{0, 1}, c.payload));
        EXPECT_EQ(n.how_ended, Ended::protocol);
        EXPECT_EQ(n.messages + n.writes, 0u);
    }
}

TEST(WireForged, AFragmentWithoutABeginningEndsTheConnection) {
    for (const Kind kind : {Kind::send, Kind::write}) {
        LoneNode n;
        n.connect();
        const Message m{0, 1000, 3000, 0};
        n.put_next(kind, kind == Kind::send ? body_of(m, 1000) : body_of(m, Target{0, 1}, 1000));
        EXPECT_EQ(n.how_ended, Ended::protocol);
    }
}

// ---- senders

// It has the pass and the number; the place it comes from or the link that it names is another.
TEST(WireForged, AFrameOfAnotherLinkOrAnotherHostIsNotTaken) {
    LoneNode n;
    n.connect();
    const Bytes message = body_of(Message{0, 0, 10, 0}, 10), fragment = body_of(Message{0, 0, 20, 0}, 10);
    for (const Bytes& fields : {message, fragment}) {
        for (const LinkId source : {LoneNode::kPeer ^ 0x10000, LoneNode::kPeer + 1, 0u}) {
            Header h = n.next(Kind::send);
            h.source = source;
            n.put(h, fields);
        }
        n.put(n.next(Kind::send), fields, address(3));
    }
    EXPECT_EQ(n.messages, 0u);
    EXPECT_TRUE(n.is_connected);
    n.put_next(Kind::send, message);
    EXPECT_EQ(n.messages, 1u) << "the number has not been used up";
}

// With a key, a number that the header has twice is that of two frames. A level that takes what comes lets the
// test pass by most of two rounds.
TEST(WireForged, ATagCountsTheRoundsOfTheSequenceNumber) {
    Tuning tuning;
    tuning.key = Key{0x0706050403020100, 0x0f0e0d0c0b0a0908};
    LoneNode n(tuning, VIP_SERVICE_UNRELIABLE);
    n.connect();
    ASSERT_TRUE(n.is_connected);
    for (uint32_t round = 1; round <= 6; ++round) {
        n.put_next(Kind::send, body_of(Message{round, 0, 10, 0}, 10));
        EXPECT_EQ(n.messages, round);
        n.skip(0x60000000);
    }
}

// ---- timers

TEST(WireForged, WhatIsAcknowledgedGivesTheRestItsWholeTime) {
    LoneNode n;
    n.connect();
    n.pass_time(60 * kMillisecond);
    ASSERT_TRUE(n.post(Operation::send, 10) && n.post(Operation::send, 10));
    n.pass_time(16 * kMillisecond);
    n.acknowledge_up_to(n.acknowledge + 1);  // three times as long is waited from here on
    n.pass_time(40 * kMillisecond);
    EXPECT_EQ(n.count(Kind::send), 2u) << "56 ms after it was sent, 40 after the last progress";
    n.pass_time(12 * kMillisecond);
    EXPECT_EQ(n.count(Kind::send), 3u);
}

TEST(WireForged, OfAFrameThatWentTwiceNoRoundTripIsMeasured) {
    LoneNode n;
    n.connect();
    n.pass_time(60 * kMillisecond);
    ASSERT_TRUE(n.post(Operation::send, 10));
    n.pass_time(21 * kMillisecond);
    ASSERT_EQ(n.count(Kind::send), 2u);
    n.acknowledge_up_to(n.acknowledge + 1);
    EXPECT_EQ(n.report().round_trip, 0) << "of which of the two?";
    ASSERT_TRUE(n.post(Operation::send, 10));
    n.pass_time(2 * kMillisecond);
    n.acknowledge_up_to(n.acknowledge + 1);
    EXPECT_EQ(n.report().round_trip, 2 * kMillisecond);
}

// ---- the hand-shake

TEST(WireForged, AnAnswerToAnotherAttemptDecidesNothing) {
    for (const Kind kind : {Kind::accept, Kind::reject, Kind::no_match}) {
        SCOPED_TRACE(name_of(kind));
        LoneNode n;
        n.ask();
        const auto answer = [&](uint64_t nonce) {
            Header h = n.next(kind);
            if (kind != Kind::accept) h.source = 0;
            Connect c = n.introduction();
            c.nonce = nonce;
            n.put(h, kind == Kind::accept ? body_of(c) : body_of(Answer{nonce, 0, 1460}));
        };
        answer(n.nonce ^ 1);
        n.pass_time(Tuning{}.no_match_grace + kMillisecond);
        answer(n.nonce ^ 1);
        EXPECT_FALSE(n.is_connected || n.failure);
        answer(n.nonce);
        n.pass_time(Tuning{}.no_match_grace + kMillisecond);
        answer(n.nonce);
        EXPECT_EQ(n.is_connected, kind == Kind::accept);
        EXPECT_EQ(n.failure.has_value(), kind != Kind::accept);
    }
}

TEST(WireForged, AConfirmationOfAnotherAttemptConnectsNoEnd) {
    LoneNode n;
    n.be_accepted();
    n.put(n.next(Kind::confirm), body_of(Answer{n.nonce ^ 1, 0, 1460}));
    EXPECT_FALSE(n.is_connected);
    n.put(n.next(Kind::confirm), body_of(Answer{n.nonce, 0, 1460}));
    EXPECT_TRUE(n.is_connected);
}

// The number of an attempt is drawn by its requester: others may have drawn the same.
TEST(WireForged, ARequestOfAnotherHostIsAnother) {
    LoneNode n;
    n.node.listen(end_address(2, "here"), &n, n.now);
    n.node.listen(end_address(2, "here"), &n, n.now);
    Header h;
    h.kind = Kind::request;
    h.source = LoneNode::kPeer;
    n.put(h, body_of(n.introduction()));
    n.put(h, body_of(n.introduction()));
    EXPECT_EQ(n.requests, 1u) << "a copy";
    n.put(h, body_of(n.introduction()), address(3));
    EXPECT_EQ(n.requests, 2u);
}

TEST(WireForged, AnIdOfAnEarlierLinkNamesNone) {
    LoneNode n;
    n.ask();
    const LinkId earlier = n.link;
    n.node.disconnect(earlier, n.now);
    n.connect();
    ASSERT_EQ(n.link & 0xFFFF, earlier & 0xFFFF) << "in its place";
    EXPECT_FALSE(n.node.post(earlier, Work{}, n.now));
    n.node.disconnect(earlier, n.now);
    Header h = n.next(Kind::send);
    h.destination = earlier;
    n.put(h, body_of(Message{0, 0, 10, 0}, 10));
    EXPECT_EQ(n.messages, 0u);
    n.put_next(Kind::send, body_of(Message{0, 0, 10, 0}, 10));
    EXPECT_EQ(n.messages, 1u);
}

}  // namespace
}  // namespace viaduct::wire
