// SPDX-License-Identifier: BSD-2-Clause
// Traffic: the three reliability levels against the reference model, in good weather and in bad, and how each
// kind of error ends (spec/reliability 6.2).
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <utility>

#include "providers/wire/bytes.hpp"
#include "providers/wire/link.hpp"
#include "tests/wire/storm.hpp"

namespace viaduct::wire {
namespace {

using test::address;
using test::kSecond;
using test::Pair;
using test::Plan;
using test::Storm;

class WireStorm : public testing::TestWithParam<uint16_t> {};

TEST_P(WireStorm, EveryByteOnceAndInOrderInBadWeather) {
    for (uint64_t seed = 1; seed <= 6; ++seed) {
        Storm storm;
        storm.seed = seed;
        storm.level = GetParam();
        storm.messages = 800;
        storm.weather = test::bad_weather();
        storm.weather.up = 100'000'000;  // flaps within so short a run
        storm.weather.down = 20'000'000;
        storm.max_frame = seed % 3 == 0 ? 600 : seed % 3 == 1 ? 1460 : 9000;
        const auto report = test::run_storm(storm, [](uint64_t) {});
        EXPECT_EQ(report.wrong, "") << "seed " << seed;
        EXPECT_NE(report.lost, 0u);
    }
}

TEST_P(WireStorm, GoodWeatherNeedsNoRetransmission) {
    Storm storm;
    storm.level = GetParam();
    storm.messages = 2000;
    const auto report = test::run_storm(storm, [](uint64_t) {});
    EXPECT_EQ(report.wrong, "");
    EXPECT_EQ(report.retransmitted, 0u);
    EXPECT_EQ(report.timeouts, 0u);
}

// As much is under way as a receiver holds early and a selective acknowledgement tells.
TEST_P(WireStorm, AWideWindowLosesNothingInBadWeather) {
    for (uint64_t seed = 11; seed <= 13; ++seed) {
        Storm storm;
        storm.seed = seed;
        storm.level = GetParam();
        storm.messages = 800;
        storm.max_frame = 600;
        storm.window = kMostInFlight;
        storm.weather = test::bad_weather();
        EXPECT_EQ(test::run_storm(storm, [](uint64_t) {}).wrong, "") << "seed " << seed;
    }
}

INSTANTIATE_TEST_SUITE_P(EachLevel, WireStorm,
                         testing::Values(VIP_SERVICE_UNRELIABLE, VIP_SERVICE_RELIABLE_DELIVERY,
                                         VIP_SERVICE_RELIABLE_RECEPTION),
                         [](const auto& level) {
                             return level.param == VIP_SERVICE_UNRELIABLE          ? "Unreliable"
                                    : level.param == VIP_SERVICE_RELIABLE_DELIVERY ? "ReliableDelivery"
                                                                                   : "ReliableReception";
                         });

// ---- one connection, watched closely

Plan only_sends(uint64_t seed) {
    Plan p;
    p.seed = seed;
    p.rdma = false;
    return p;
}

struct Line : Pair {
    explicit Line(uint16_t level = VIP_SERVICE_RELIABLE_DELIVERY, Plan a_plan = only_sends(1), Tuning t = {})
        : Pair(1, t, a_plan, only_sends(2), level) {
        EXPECT_TRUE(connect());
    }
    void send(uint32_t tag, uint32_t total) {
        Work w;
        w.tag = tag;
        w.total = total;
        ASSERT_TRUE(a.node.post(a.link, w, wire.now));
        ++a.posted;
    }
    bool until(const std::function<bool()>& done, Time limit = 5 * kSecond) {
        return wire.run(wire.now + limit, done);
    }
};

TEST(WireTraffic, AnAcknowledgementRidesOnTheAnswer) {
    Line line;
    line.a.work(1, line.wire.now);
    ASSERT_TRUE(line.until([&] { return line.b.messages_in == 1; }));
    line.b.work(1, line.wire.now);
    ASSERT_TRUE(line.until([&] { return line.a.finished_count == 1; }));
    EXPECT_EQ(line.b.node.counters().acks_out, 0u);
}

TEST(WireTraffic, AnAcknowledgementThatHasNothingToRideOnComesAlone) {
    Line line;
    const Time began = line.wire.now;
    line.a.work(1, line.wire.now);
    ASSERT_TRUE(line.until([&] { return line.a.finished_count == 1; }));
    EXPECT_EQ(line.b.node.counters().acks_out, 1u);
    EXPECT_LE(line.wire.now - began, 100'000);
}

// The timer that sends it alone is set with the frame; nothing is left to be done after every frame.
TEST(WireTraffic, AFrameThatCanWaitForItsAnswerLeavesNothingToFlush) {
    Line line;
    line.a.work(1, line.wire.now);
    ASSERT_TRUE(line.until([&] { return line.b.messages_in == 1; }));
    EXPECT_FALSE(line.b.node.wants_flush());
    EXPECT_LE(line.b.node.next_deadline(), line.wire.now + Tuning{}.ack_delay);
}

// The first round trip that is measured is a thousandth of what is waited for before.
TEST(WireTraffic, AnAcknowledgementShortensTheWaitForTheRest) {
    Line line;
    int data = 0;
    line.wire.tap = [&](std::byte* frame, uint32_t&, const NicAddress& from) {
        const bool is_data = from == address(1) && load8(frame + 1) == static_cast<uint8_t>(Kind::send);
        return !(is_data && ++data == 2);
    };
    line.wire.run_for(30'000'000);  // timers of the hand-shake have passed, those of silence are not due
    const Time began = line.wire.now;
    line.a.work(2, line.wire.now);
    ASSERT_TRUE(line.until([&] { return line.b.messages_in == 2; }));
    EXPECT_LT(line.wire.now - began, Tuning{}.first_timeout / 2);
}

TEST(WireTraffic, OneLostFrameCostsOneRetransmissionAndNoTimeout) {
    Line line;
    int data = 0;
    line.wire.tap = [&](std::byte* frame, uint32_t&, const NicAddress& from) {
        const bool is_data = from == address(1) && load8(frame + 1) == static_cast<uint8_t>(Kind::send);
        return !(is_data && ++data == 5);
    };
    for (uint64_t n = 20; n <= 100; n += 20) {
        line.a.work(n, line.wire.now);
        ASSERT_TRUE(line.until([&] { return line.a.finished_count == n; }));
        line.wire.run_for(100'000);
    }
    EXPECT_EQ(line.b.messages_in, 100u);
    EXPECT_EQ(line.a.wrong + line.b.wrong, "");
    EXPECT_LE(line.a.node.counters().retransmitted, 2u);
}

// A peer that waits for its processor acknowledges late: what counts as lost meanwhile has arrived.
TEST(WireTraffic, ANeedlessTimeoutCostsNoWindow) {
    Line line;
    const auto send_up_to = [&](uint64_t n) {
        while (line.a.finished_count < n) {
            line.a.work(n, line.wire.now);
            ASSERT_TRUE(line.until([&, n = line.a.finished_count] { return line.a.finished_count > n; }));
        }
    };
    send_up_to(3000);
    line.wire.weather.delay = 8'000'000;
    send_up_to(3100);
    EXPECT_NE(line.a.node.counters().timeouts, 0u);
    EXPECT_LE(line.a.node.counters().retransmitted, 8u);
    LinkReport report;
    ASSERT_TRUE(line.a.node.report(line.a.link, &report));
    EXPECT_EQ(report.window, Tuning{}.window);
}

TEST(WireTraffic, TheWindowOpensInGoodWeatherAndClosesAfterLoss) {
    Line line;
    line.a.work(3000, line.wire.now);
    while (line.a.finished_count < 3000) {
        line.a.work(3000, line.wire.now);
        ASSERT_TRUE(line.until([&, n = line.a.finished_count] { return line.a.finished_count > n; }));
    }
    LinkReport before;
    ASSERT_TRUE(line.a.node.report(line.a.link, &before));
    EXPECT_EQ(before.window, Tuning{}.window);
    line.wire.weather.lose = 0.2;
    while (line.a.finished_count < 4000) {
        line.a.work(4000, line.wire.now);
        ASSERT_TRUE(line.until([&, n = line.a.finished_count] { return line.a.finished_count > n; }));
    }
    LinkReport after;
    ASSERT_TRUE(line.a.node.report(line.a.link, &after));
    EXPECT_LT(after.window, before.window / 2);
}

TEST(WireTraffic, WithoutCreditOnlyTheFirstFragmentOfALongMessageGoes) {
    Pair pair(1, Tuning{}, only_sends(1), only_sends(2), VIP_SERVICE_RELIABLE_DELIVERY);
    pair.b.credit_ahead = 0;
    ASSERT_TRUE(pair.connect());
    uint64_t bytes = 0;
    pair.wire.tap = [&](std::byte* frame, uint32_t& n, const NicAddress& from) {
        if (from == address(1) && load8(frame + 1) == static_cast<uint8_t>(Kind::send)) bytes += n;
        return true;
    };
    pair.wire.weather.delay = 1'000'000;
    pair.b.refuse_messages = HostResult::no_receive;
    Work w;
    w.total = 500'000;
    ASSERT_TRUE(pair.a.node.post(pair.a.link, w, pair.wire.now));
    ++pair.a.posted;
    ASSERT_TRUE(pair.wire.run(pair.wire.now + kSecond, [&] { return pair.a.how_ended.has_value(); }));
    EXPECT_LE(bytes, 1460u) << "the rest is kept back until a receive was found";
}

TEST(WireTraffic, FullOutletsOnlyDelay) {
    Line line;
    line.wire.stopped = true;
    line.a.work(30, line.wire.now);
    line.wire.run_for(1'000'000);
    EXPECT_EQ(line.b.messages_in, 0u);
    EXPECT_NE(line.a.node.counters().outlet_full, 0u);
    line.wire.stopped = false;
    ASSERT_TRUE(line.until([&] { return line.a.finished_count == 30; }));
    EXPECT_EQ(line.b.wrong, "");
}

// An end that leaves in good order has acknowledged everything it has received, if only by leaving.
TEST(WireTraffic, ACloseAcknowledgesWhatHasCome) {
    for (const uint16_t level : {VIP_SERVICE_RELIABLE_DELIVERY, VIP_SERVICE_RELIABLE_RECEPTION}) {
        Line line(level);
        line.wire.tap = [&](std::byte* frame, uint32_t&, const NicAddress& from) {
            return from == address(1) || load8(frame + 1) == static_cast<uint8_t>(Kind::disconnect);
        };
        line.send(0, 3000);
        ASSERT_TRUE(line.until([&] { return line.b.messages_in == 1; }));
        EXPECT_EQ(line.a.finished_count, 0u);
        line.b.node.close_links(line.wire.now);
        ASSERT_TRUE(line.until([&] { return line.a.how_ended.has_value(); }));
        EXPECT_EQ(line.a.how_ended, Ended::by_peer);
        EXPECT_EQ(line.a.good_count, 1u) << "finished before the end is told";
        EXPECT_EQ(line.a.last_outcome, Outcome::ok);
    }
}

TEST(WireTraffic, ACloseIsOpenUntilThePeerHasIt) {
    Line line;
    int closes = 0;
    line.wire.tap = [&](std::byte* frame, uint32_t&, const NicAddress& from) {
        if (from == address(1)) return true;
        return load8(frame + 1) == static_cast<uint8_t>(Kind::disconnect) && ++closes > 3;
    };
    line.send(0, 100);
    ASSERT_TRUE(line.until([&] { return line.b.messages_in == 1; }));
    EXPECT_EQ(line.b.node.closes_open(), 0u);
    line.b.node.close_links(line.wire.now);
    EXPECT_EQ(line.b.node.closes_open(), 1u);
    ASSERT_TRUE(line.until([&] { return line.b.node.closes_open() == 0; }));
    EXPECT_EQ(closes, 4);
    EXPECT_EQ(line.a.how_ended, Ended::by_peer);
    EXPECT_EQ(line.a.good_count, 1u);
    EXPECT_EQ(line.b.node.links_in_use(), 0u);
}

TEST(WireTraffic, ACloseWithoutAnAnswerIsGivenUp) {
    Line line;
    line.wire.detach(line.a.node);
    const Time began = line.wire.now;
    line.b.node.close_links(began);
    ASSERT_TRUE(line.until([&] { return line.b.node.closes_open() == 0; }));
    EXPECT_GE(line.wire.now - began, Tuning{}.close_linger);
    EXPECT_EQ(line.b.node.links_in_use(), 0u);
}

// Both ends know of the connection, and their hosts have not begun.
void connect_unstarted(Pair& pair) {
    pair.b.node.listen(test::end_address(2, "here"), &pair.b, pair.wire.now);
    pair.a.link = pair.a.node.request(&pair.a, test::end_address(1, "me"), test::end_address(2, "here"),
                                      pair.traits, kNoTime, pair.wire.now);
    ASSERT_TRUE(pair.wire.run(pair.wire.now + kSecond, [&] { return pair.b.requests_heard == 1; }));
    Status why;
    pair.b.link = pair.b.node.accept(pair.b.incoming_id, &pair.b, pair.traits, pair.wire.now, &why);
    ASSERT_TRUE(
        pair.wire.run(pair.wire.now + kSecond, [&] { return pair.a.is_connected && pair.b.is_connected; }));
}

TEST(WireTraffic, WhatArrivesBeforeTheHostIsReadyWaits) {
    Pair pair(1, Tuning{}, only_sends(1), only_sends(2), VIP_SERVICE_RELIABLE_DELIVERY);
    connect_unstarted(pair);
    pair.a.node.start(pair.a.link, pair.wire.now);
    pair.a.work(5, pair.wire.now);
    pair.wire.run_for(500'000);
    EXPECT_EQ(pair.b.messages_in, 0u);
    pair.b.node.start(pair.b.link, pair.wire.now);
    EXPECT_EQ(pair.b.messages_in, 5u);
    EXPECT_EQ(pair.b.wrong, "");
}

// ---- errors: spec/reliability 6.2

class WireErrors : public testing::TestWithParam<uint16_t> {
protected:
    static bool reliable() { return GetParam() != VIP_SERVICE_UNRELIABLE; }
};

using WireRefusals = WireErrors;  // Unreliable refuses nothing and has no reads

TEST_P(WireErrors, AMessageWithoutAReceive) {
    Plan plan = only_sends(1);
    plan.reliable = reliable();
    Line line(GetParam(), plan);
    line.b.refuse_messages = HostResult::no_receive;
    line.send(0, 3000);
    line.send(1, 10);
    line.wire.run_for(kSecond);
    if (!reliable()) {
        EXPECT_EQ(line.a.good_count, 2u);
        EXPECT_TRUE(line.a.is_connected && line.b.is_connected);
        return;
    }
    EXPECT_EQ(line.a.finished_count, 1u) << "the first tells why, the second is left to be flushed";
    EXPECT_EQ(line.a.last_outcome, Outcome::receive_refused);
    EXPECT_EQ(line.a.how_ended, Ended::refused_ours);
    EXPECT_EQ(line.b.how_ended, Ended::refused_here);
    EXPECT_EQ(line.a.endings + line.b.endings, 2);
}

TEST_P(WireRefusals, EarlierMessagesAreGoodWhenALaterOneIsRefused) {
    Line line(GetParam());
    line.a.work(3, line.wire.now);
    ASSERT_TRUE(line.until([&] { return line.b.messages_in == 3; }));
    line.b.refuse_messages = HostResult::bad_receive;
    line.a.work(10, line.wire.now);
    line.wire.run_for(kSecond);
    EXPECT_EQ(line.a.good_count, 3u);
    EXPECT_EQ(line.a.finished_count, 4u);
    EXPECT_EQ(line.a.last_outcome, Outcome::receive_refused);
}

TEST_P(WireErrors, ARefusedWrite) {
    Plan plan = only_sends(1);
    plan.reliable = reliable();
    Line line(GetParam(), plan);
    line.b.refuse_writes = true;
    Work w;
    w.operation = Operation::write;
    w.total = 100;
    ASSERT_TRUE(line.a.node.post(line.a.link, w, line.wire.now));
    line.wire.run_for(kSecond);
    EXPECT_EQ(line.a.last_outcome, reliable() ? Outcome::not_permitted : Outcome::ok);
    EXPECT_EQ(line.a.is_connected, !reliable());
}

TEST_P(WireErrors, AWriteWhosePermissionEndsUnderIt) {
    Plan plan = only_sends(1);
    plan.reliable = false;  // the model has not planned it
    Line line(GetParam(), plan);
    line.b.permission_ends = true;
    Work w;
    w.operation = Operation::write;
    w.handle = test::kWritable;
    w.has_immediate = true;
    w.total = 8000;
    ASSERT_TRUE(line.a.node.post(line.a.link, w, line.wire.now));
    line.wire.run_for(kSecond);
    EXPECT_EQ(line.a.last_outcome, reliable() ? Outcome::not_permitted : Outcome::ok);
    EXPECT_EQ(line.a.is_connected, !reliable());
    EXPECT_EQ(line.b.refused_receives, 1u) << "the receive it has taken gets the error, once";
    EXPECT_EQ(line.b.abandoned, 0u) << "and is not for the next";
    EXPECT_EQ(line.b.taken_receives, 0u);
}

TEST_P(WireRefusals, ARefusedRead) {
    Line line(GetParam());
    line.b.refuse_reads = true;
    Work w;
    w.operation = Operation::read;
    w.handle = test::kReadable;
    w.total = 100;
    ASSERT_TRUE(line.a.node.post(line.a.link, w, line.wire.now));
    line.wire.run_for(kSecond);
    EXPECT_EQ(line.a.last_outcome, Outcome::not_permitted);
    EXPECT_EQ(line.a.how_ended, Ended::refused_ours);
    EXPECT_EQ(line.b.how_ended, Ended::refused_here);
}

TEST_P(WireErrors, ADeadLinkEndsInTimeOnBothSides) {
    Plan plan = only_sends(1);
    plan.reliable = reliable();
    Line line(GetParam(), plan);
    line.wire.weather.lose = 1;
    const Time began = line.wire.now;
    line.send(0, 100);
    ASSERT_TRUE(line.until([&] { return line.a.how_ended && line.b.how_ended; }));
    EXPECT_LE(line.wire.now - began, Tuning{}.silence + Tuning{}.keep_alive);
    EXPECT_EQ(line.a.last_outcome, reliable() ? Outcome::gave_up : Outcome::ok);
    line.wire.run_for(5 * kSecond);
    EXPECT_EQ(line.a.node.links_in_use() + line.b.node.links_in_use(), 0u) << "nothing stays behind";
}

TEST_P(WireErrors, ALinkThatIsDeadOneWayEndsOnBothSidesWithWhatWasSent) {
    Plan plan = only_sends(1);
    plan.reliable = reliable();
    Line line(GetParam(), plan);
    line.wire.tap = [](std::byte*, uint32_t&, const NicAddress& from) { return !(from == address(1)); };
    line.send(0, 100);
    ASSERT_TRUE(line.until([&] { return line.a.how_ended && line.b.how_ended; }));
    EXPECT_EQ(line.a.last_outcome, reliable() ? Outcome::gave_up : Outcome::ok);
}

TEST_P(WireErrors, ADamagedWriteIsToldAtUnreliableAndSentAgainElsewhere) {
    Plan plan = only_sends(1);
    plan.reliable = reliable();
    Line line(GetParam(), plan);
    bool damage = true;
    line.wire.tap = [&](std::byte* frame, uint32_t& bytes, const NicAddress&) {
        if (load8(frame + 1) == static_cast<uint8_t>(Kind::write) && std::exchange(damage, false))
            frame[bytes - 1] ^= std::byte{1};
        return true;
    };
    line.b.refuse_writes = false;
    Work w;
    w.operation = Operation::write;
    w.handle = test::kWritable;
    w.total = 100;
    ASSERT_TRUE(line.a.node.post(line.a.link, w, line.wire.now));
    line.wire.run_for(kSecond);
    EXPECT_FALSE(damage);
    EXPECT_EQ(line.b.damaged, reliable() ? 0u : 1u);
    EXPECT_EQ(line.a.last_outcome, Outcome::ok);
    EXPECT_TRUE(line.a.is_connected && line.b.is_connected);
}

TEST_P(WireErrors, ADisconnectArrivesThroughLoss) {
    Line line(GetParam());
    line.wire.weather.lose = 0.5;
    line.a.node.disconnect(line.a.link, line.wire.now);
    ASSERT_TRUE(line.until([&] { return line.b.how_ended.has_value(); }));
    EXPECT_EQ(line.a.endings, 0) << "the end that disconnects is not told of it";
    EXPECT_FALSE(line.a.node.post(line.a.link, Work{}, line.wire.now));
    line.wire.run_for(5 * kSecond);
    EXPECT_EQ(line.a.node.links_in_use() + line.b.node.links_in_use(), 0u);
}

// The peer may have left again before this end's program is told that it is connected.
TEST_P(WireErrors, WhatWasSentBeforeADisconnectComesFirstThoughItsReceiverHasNotStarted) {
    Plan plan = only_sends(1);
    plan.reliable = reliable();
    Pair pair(1, Tuning{}, plan, only_sends(2), GetParam());
    connect_unstarted(pair);
    pair.a.node.start(pair.a.link, pair.wire.now);
    pair.a.work(3, pair.wire.now);
    pair.a.node.disconnect(pair.a.link, pair.wire.now);
    pair.wire.run_for(2 * kSecond);
    EXPECT_EQ(pair.b.messages_in, 0u);
    EXPECT_FALSE(pair.b.how_ended.has_value()) << "not before it has what came first";
    EXPECT_EQ(pair.a.node.links_in_use(), 0u) << "the end that has left has its confirmation";
    pair.b.node.start(pair.b.link, pair.wire.now);
    pair.wire.run_for(kSecond / 100);
    EXPECT_EQ(pair.b.messages_in, 3u);
    EXPECT_EQ(pair.b.how_ended, Ended::by_peer);
    EXPECT_EQ(pair.b.node.links_in_use(), 0u);
}

TEST_P(WireErrors, AnIdleConnectionStaysAlive) {
    Line line(GetParam());
    line.wire.weather.lose = 0.05;
    line.wire.run_for(60 * kSecond);
    EXPECT_TRUE(line.a.is_connected && line.b.is_connected);
}

TEST_P(WireErrors, APeerThatCameBackAsAnotherIsNoticedAtOnce) {
    Line line(GetParam());
    line.wire.tap = [&](std::byte* frame, uint32_t&, const NicAddress&) {
        return load8(frame + 1) != static_cast<uint8_t>(Kind::disconnect);
    };
    line.b.node.disconnect(line.b.link, line.wire.now);
    line.wire.run_for(kSecond / 2 + Tuning{}.close_linger);
    EXPECT_EQ(line.a.how_ended, Ended::lost);
    EXPECT_NE(line.a.node.counters().resets_in + line.a.endings, 0u);
}

TEST_P(WireErrors, AProcessThatWasStoppedDoesNotTakeItsPeersForDead) {
    Line line(GetParam());
    // Neither side runs for five seconds; nothing was sent, nothing was lost.
    line.wire.now += 5 * kSecond;
    line.wire.run_for(2 * kSecond);
    EXPECT_TRUE(line.a.is_connected && line.b.is_connected);
}

INSTANTIATE_TEST_SUITE_P(EachLevel, WireErrors,
                         testing::Values(VIP_SERVICE_UNRELIABLE, VIP_SERVICE_RELIABLE_DELIVERY,
                                         VIP_SERVICE_RELIABLE_RECEPTION),
                         [](const auto& level) {
                             return level.param == VIP_SERVICE_UNRELIABLE          ? "Unreliable"
                                    : level.param == VIP_SERVICE_RELIABLE_DELIVERY ? "ReliableDelivery"
                                                                                   : "ReliableReception";
                         });

INSTANTIATE_TEST_SUITE_P(ReliableLevels, WireRefusals,
                         testing::Values(VIP_SERVICE_RELIABLE_DELIVERY, VIP_SERVICE_RELIABLE_RECEPTION),
                         [](const auto& level) {
                             return level.param == VIP_SERVICE_RELIABLE_DELIVERY ? "ReliableDelivery"
                                                                                 : "ReliableReception";
                         });

TEST(WireTraffic, AnImpossibleFrameBreaksItsOwnConnectionOnly) {
    Line line;
    bool changed = false;
    line.wire.tap = [&](std::byte* frame, uint32_t& n, const NicAddress& from) {
        if (changed || !(from == address(1)) || load8(frame + 1) != static_cast<uint8_t>(Kind::send))
            return true;
        changed = true;
        Frame f;
        EXPECT_EQ(read_frame({frame, n}, &f), Flaw::none);
        Message m = read_message(f);
        m.offset = m.total + 1;
        write_message(frame + kHeaderBytes, m);
        seal(frame, f.header);
        return true;
    };
    line.send(0, 100);
    line.wire.run_for(kSecond);
    EXPECT_EQ(line.b.how_ended, Ended::protocol);
    EXPECT_EQ(line.a.how_ended, Ended::lost);
    EXPECT_EQ(line.b.messages_in, 0u);
}

// A late frame of a kind that Unreliable does not have, with fewer fields than a message (for the address
// sanitizer: nothing stands behind it).
TEST(WireTraffic, AShortFrameIsNotReadBeyondItsEnd) {
    Plan plan = only_sends(1);
    plan.reliable = false;
    Line line(VIP_SERVICE_UNRELIABLE, plan);
    Header h;
    line.wire.tap = [&](std::byte* frame, uint32_t& n, const NicAddress& from) {
        Frame f;
        if (from == address(1) && read_frame({frame, n}, &f) == Flaw::none && f.header.kind == Kind::send)
            h = f.header;
        return true;
    };
    line.send(0, 100);
    ASSERT_TRUE(line.until([&] { return line.b.messages_in == 1; }));
    ASSERT_EQ(h.destination, line.b.link);
    h.kind = Kind::read_data;
    h.length = kReadDataBytes;
    const std::unique_ptr<std::byte[]> frame(new std::byte[kHeaderBytes + kReadDataBytes]{});
    seal(frame.get(), h);
    const uint64_t before = line.b.node.counters().duplicates;
    line.b.node.input({frame.get(), kHeaderBytes + kReadDataBytes}, address(1), line.wire.now);
    EXPECT_EQ(line.b.node.counters().duplicates, before + 1);
    EXPECT_TRUE(line.b.is_connected);
}

TEST(WireTraffic, MemoryThatGoesAwayUnderASendEndsTheConnection) {
    Line line;
    line.a.source_unmapped = true;
    line.send(0, 100);
    line.wire.run_for(kSecond);
    EXPECT_EQ(line.a.last_outcome, Outcome::bad_source);
    EXPECT_EQ(line.a.how_ended, Ended::bad_source);
    EXPECT_EQ(line.b.how_ended, Ended::lost);
}

// A fault of this end, not of the peer.
TEST(WireTraffic, MemoryThatGoesAwayUnderAnAnswerEndsTheConnection) {
    for (const Operation operation : {Operation::read, Operation::fetch_add}) {
        Line line;
        line.a.result_unmapped = true;
        Work w;
        w.operation = operation;
        w.handle = operation == Operation::read ? test::kReadable : test::kCounter;
        w.total = 8;
        ASSERT_TRUE(line.a.node.post(line.a.link, w, line.wire.now));
        line.wire.run_for(kSecond);
        EXPECT_EQ(line.a.last_outcome, Outcome::bad_source);
        EXPECT_EQ(line.a.how_ended, Ended::bad_source);
        EXPECT_EQ(line.a.node.counters().protocol_errors, 0u);
        EXPECT_EQ(line.b.how_ended, Ended::lost);
    }
}

}  // namespace
}  // namespace viaduct::wire
