// SPDX-License-Identifier: BSD-2-Clause
// The fast path of a message: it is taken when its conditions hold, and else the slow path; what arrives is
// the same. The storms of wire_traffic_test.cpp send two messages of three by it.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "providers/wire/bytes.hpp"
#include "providers/wire/link.hpp"
#include "tests/wire/storm.hpp"

namespace viaduct::wire {
namespace {

using test::address;
using test::kSecond;
using test::Pair;
using test::Plan;

Plan sends_of(uint64_t seed) {
    Plan p;
    p.seed = seed;
    p.rdma = false;
    p.largest = 200;  // every one fits a frame
    return p;
}

struct Short : Pair {
    explicit Short(uint16_t level = VIP_SERVICE_RELIABLE_DELIVERY, Tuning t = {},
                   uint64_t max_transfer = 1 << 20)
        : Pair(1, t, sends_of(1), sends_of(2), level) {
        traits.max_transfer = max_transfer;
        EXPECT_TRUE(connect());
        while (b.plan_in.length(first) == 0 || b.plan_in.length(first) > 100) ++first;
        a.posted = a.finished_count = b.in_next = first;
        wire.run_for(15'000'000);  // timers of the hand-shake have passed, those of silence are not due
    }
    // The next message of a's plan.
    bool at_once() {
        std::byte payload[3000];
        const uint32_t bytes = a.plan_out.length(a.posted), word = a.plan_out.word(a.posted);
        for (uint32_t i = 0; i < bytes; ++i) payload[i] = test::pattern(a.plan_out.seed, a.posted, i);
        const bool immediate = a.plan_out.immediate(a.posted);
        if (!a.node.post_at_once(a.link, static_cast<uint32_t>(a.posted), {payload, bytes},
                                 immediate ? &word : nullptr, wire.now))
            return false;
        ++a.posted;
        return true;
    }
    bool in_general(bool fence = false) {
        Work w;
        w.tag = static_cast<uint32_t>(a.posted);
        w.total = a.plan_out.length(a.posted);
        w.immediate = a.plan_out.word(a.posted);
        w.has_immediate = a.plan_out.immediate(a.posted);
        w.fence = fence;
        if (!a.node.post(a.link, w, wire.now)) return false;
        ++a.posted;
        return true;
    }
    void all_arrive() {
        EXPECT_TRUE(wire.run(wire.now + 5 * kSecond, [&] { return a.finished_count == a.posted; }));
        EXPECT_EQ(b.in_next, a.posted);
        EXPECT_EQ(a.wrong + b.wrong, "");
    }
    uint64_t first = 0;
};

// A frame of a message from a.
bool is_message(const std::byte* frame, const NicAddress& from) {
    return from == address(1) && load8(frame + 1) == static_cast<uint8_t>(Kind::send);
}

TEST(WireFastPath, AMessageIsOnItsWayWithoutAskingTheHostForItsMemory) {
    Short line;
    line.a.source_unmapped = true;  // a reader is told that it cannot be read
    const uint64_t sent = line.wire.sent;
    ASSERT_TRUE(line.at_once());
    EXPECT_EQ(line.wire.sent, sent + 1);
    EXPECT_FALSE(line.a.node.wants_flush());
    line.all_arrive();
    EXPECT_EQ(line.a.last_outcome, Outcome::ok);
}

// It asks for its acknowledgement, which comes alone when nothing is answered.
TEST(WireFastPath, ItIsAcknowledgedSoon) {
    Short line;
    const Time began = line.wire.now;
    ASSERT_TRUE(line.at_once());
    line.all_arrive();
    EXPECT_EQ(line.b.node.counters().acks_out, 1u);
    EXPECT_LE(line.wire.now - began, 100'000);
}

TEST(WireFastPath, OneThatIsLostIsReadAgain) {
    Short line;
    bool lose = true;
    line.wire.tap = [&](std::byte* frame, uint32_t&, const NicAddress& from) {
        return !(is_message(frame, from) && std::exchange(lose, false));
    };
    const Time began = line.wire.now;
    ASSERT_TRUE(line.at_once());
    line.all_arrive();
    EXPECT_EQ(line.a.node.counters().retransmitted, 1u);
    EXPECT_LT(line.wire.now - began, Tuning{}.first_timeout + 5'000'000);  // its timer was set
}

TEST(WireFastPath, BothWaysMayBeMixed) {
    Short line;
    for (int i = 0; i < 8; ++i) ASSERT_TRUE(i % 2 == 0 ? line.at_once() : line.in_general());
    line.all_arrive();
}

TEST(WireFastPath, NothingOvertakesWhatWaits) {
    Short line;
    line.wire.stopped = true;
    ASSERT_TRUE(line.in_general());
    line.wire.stopped = false;
    EXPECT_FALSE(line.at_once());  // the first one was not sent yet
    ASSERT_TRUE(line.in_general());
    line.all_arrive();
}

TEST(WireFastPath, NotWhenTheOutletIsFull) {
    Short line;
    line.wire.stopped = true;
    EXPECT_FALSE(line.at_once());
    line.wire.stopped = false;
    EXPECT_TRUE(line.at_once());
    line.all_arrive();
}

TEST(WireFastPath, NotBeyondTheWindow) {
    Tuning t;
    t.window = 4;
    Short line(VIP_SERVICE_RELIABLE_DELIVERY, t);
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(line.at_once());
    EXPECT_FALSE(line.at_once());
    line.all_arrive();
    EXPECT_TRUE(line.at_once());
    line.all_arrive();
}

TEST(WireFastPath, NotBeyondTheDepthOfTheQueue) {
    Tuning t;
    t.queue_depth = 4;
    Short line(VIP_SERVICE_RELIABLE_DELIVERY, t);
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(line.at_once());
    EXPECT_FALSE(line.at_once());
    EXPECT_FALSE(line.in_general());
    line.all_arrive();
}

TEST(WireFastPath, NotBehindAFrameThatIsLost) {
    Short line;
    line.wire.weather.lose = 1;
    ASSERT_TRUE(line.at_once());
    line.wire.run_for(30'000'000);  // its timeout has passed; the frame waits to be sent again, or has been
    line.wire.stopped = true;
    line.wire.run_for(100'000'000);
    line.wire.stopped = false;
    line.wire.weather.lose = 0;
    EXPECT_FALSE(line.at_once());
    line.all_arrive();
}

TEST(WireFastPath, NotForPayloadThatGoesZeroCopy) {
    Short line;
    line.a.port.zero_copy_above = line.a.plan_out.length(line.a.posted);
    EXPECT_FALSE(line.at_once());
    ++line.a.port.zero_copy_above;
    EXPECT_TRUE(line.at_once());
    line.all_arrive();
}

TEST(WireFastPath, NotForMoreThanAFrame) {
    Short line;
    LinkReport link;
    ASSERT_TRUE(line.a.node.report(line.a.link, &link));
    const std::vector<std::byte> payload(link.send_frame);
    const uint32_t room = link.send_frame - kHeaderBytes - kMessageBytes;
    EXPECT_FALSE(
        line.a.node.post_at_once(line.a.link, 0, {payload.data(), room + 1}, nullptr, line.wire.now));
    EXPECT_TRUE(line.a.node.post_at_once(line.a.link, 0, {payload.data(), room}, nullptr, line.wire.now));
}

TEST(WireFastPath, NotAtUnreliableAndNotWithoutAConnection) {
    Short unreliable(VIP_SERVICE_UNRELIABLE);
    EXPECT_FALSE(unreliable.at_once());
    Short line;
    EXPECT_FALSE(line.a.node.post_at_once(line.a.link + 1, 0, {}, nullptr, line.wire.now));
    line.a.node.disconnect(line.a.link, line.wire.now);
    EXPECT_FALSE(line.at_once());
}

// What the host refuses breaks the connection, as any message does.
TEST(WireFastPath, ARefusalIsTold) {
    Short line;
    line.b.refuse_messages = HostResult::no_receive;
    ASSERT_TRUE(line.at_once());
    ASSERT_TRUE(line.wire.run(line.wire.now + kSecond, [&] { return line.a.how_ended.has_value(); }));
    EXPECT_EQ(line.a.last_outcome, Outcome::receive_refused);
    EXPECT_EQ(line.b.how_ended, Ended::refused_here);
}

// A frame that is damaged is none.
TEST(WireFastPath, ADamagedOneIsNotTaken) {
    Short line;
    bool damage = true;
    line.wire.tap = [&](std::byte* frame, uint32_t& bytes, const NicAddress& from) {
        if (is_message(frame, from) && std::exchange(damage, false)) frame[bytes - 1] ^= std::byte{1};
        return true;
    };
    ASSERT_TRUE(line.at_once());
    line.all_arrive();
    EXPECT_EQ(line.b.node.counters().bad_check, 1u);
    EXPECT_EQ(line.a.node.counters().retransmitted, 1u);
}

// ---- peers that do what no peer does

TEST(WireFastPath, AMessageAboveTheLimitEndsTheConnection) {
    Short line(VIP_SERVICE_RELIABLE_DELIVERY, {}, 300);
    const std::vector<std::byte> payload(301);
    ASSERT_TRUE(line.a.node.post_at_once(line.a.link, 0, payload, nullptr, line.wire.now));
    ASSERT_TRUE(line.wire.run(line.wire.now + kSecond, [&] { return line.b.how_ended.has_value(); }));
    EXPECT_EQ(line.b.how_ended, Ended::protocol);
    EXPECT_EQ(line.b.messages_in, 0u);
}

TEST(WireFastPath, AMessageInTheMiddleOfAnotherEndsTheConnection) {
    Short line;
    int fragments = 0;
    line.wire.tap = [&](std::byte* frame, uint32_t& bytes, const NicAddress& from) {
        if (!is_message(frame, from) || ++fragments != 2) return true;
        Frame f;
        EXPECT_EQ(read_frame({frame, bytes}, &f), Flaw::none);
        write_message(frame + kHeaderBytes, {1, 0, payload_bytes(f), 0});
        seal(frame, f.header);
        return true;
    };
    Work w;
    w.total = 3000;  // not of the plan: what b says of its length does not matter here
    ASSERT_TRUE(line.a.node.post(line.a.link, w, line.wire.now));
    ASSERT_TRUE(line.wire.run(line.wire.now + kSecond, [&] { return line.b.how_ended.has_value(); }));
    EXPECT_EQ(line.b.how_ended, Ended::protocol);
    EXPECT_GE(fragments, 2);
    EXPECT_EQ(line.b.messages_in, 0u);
}

}  // namespace
}  // namespace viaduct::wire
