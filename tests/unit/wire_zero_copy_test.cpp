// SPDX-License-Identifier: BSD-2-Clause
// Payload that is sent from where it lies: what arrives is the same, and memory that changes meanwhile costs
// a frame, never a wrong byte.
#include <gtest/gtest.h>

#include "providers/wire/link.hpp"
#include "tests/wire/storm.hpp"

namespace viaduct::wire {
namespace {

using test::kSecond;
using test::Pair;
using test::Plan;
using test::Storm;

Plan messages_only(uint64_t seed) {
    Plan p;
    p.seed = seed;
    p.rdma = false;
    return p;
}

struct Lending : Pair {
    explicit Lending(uint16_t level = VIP_SERVICE_RELIABLE_DELIVERY)
        : Pair(1, {}, messages_only(1), messages_only(2), level) {
        a.port.zero_copy_above = 1;
        EXPECT_TRUE(connect());
    }
    // All of a's messages arrive and are finished.
    void carry(uint64_t messages) {
        while (a.finished_count < messages) {
            a.work(messages, wire.now);
            const uint64_t before = a.finished_count;
            ASSERT_TRUE(wire.run(wire.now + 5 * kSecond, [&] { return a.finished_count != before; }));
        }
        EXPECT_EQ(b.messages_in, messages);
        EXPECT_EQ(a.wrong + b.wrong, "");
    }
};

TEST(WireZeroCopy, EveryByteOnceAndInOrderInBadWeather) {
    for (uint64_t seed = 1; seed <= 4; ++seed) {
        Storm storm;
        storm.seed = seed;
        storm.messages = 800;
        storm.weather = test::bad_weather();
        storm.max_frame = seed % 2 == 0 ? 600 : 9000;
        storm.zero_copy_from = seed < 3 ? 1 : 300;
        const auto report = test::run_storm(storm, [](uint64_t) {});
        EXPECT_EQ(report.wrong, "") << "seed " << seed;
        EXPECT_NE(report.retransmitted, 0u);
        EXPECT_NE(report.zero_copied, 0u);
    }
}

TEST(WireZeroCopy, MemoryThatChangesMeanwhileIsSentAgainAsACopy) {
    Lending line;
    line.a.port.on_zero_copy = [&] { line.a.payload_memory.back() ^= std::byte{1}; };
    line.carry(200);
    const Counters& c = line.a.node.counters();
    EXPECT_NE(c.zero_copied, 0u);
    EXPECT_EQ(line.b.node.counters().bad_check, c.zero_copied);
    EXPECT_GE(c.retransmitted, c.zero_copied);
}

TEST(WireZeroCopy, WhatCannotGoZeroCopyIsCopied) {
    Lending line;
    line.a.no_zero_copy = true;
    line.carry(50);
    EXPECT_EQ(line.a.node.counters().zero_copied, 0u);
}

TEST(WireZeroCopy, OnlyPayloadsOfThatSizeAre) {
    Lending line;
    line.a.port.zero_copy_above = 100;
    LinkReport link;
    ASSERT_TRUE(line.a.node.report(line.a.link, &link));
    const uint32_t room = link.send_frame - kHeaderBytes - kMessageBytes;
    uint64_t large = 0;
    for (uint64_t n = 0; n < 200; ++n) {
        const uint32_t length = line.a.plan_out.length(n);
        large += length / room + (length % room >= 100 ? 1 : 0);
    }
    line.carry(200);
    EXPECT_EQ(line.a.node.counters().zero_copied, large);
}

// Unreliable work is finished before its result is known, and then its memory is the program's
// again.
TEST(WireZeroCopy, UnreliableMessagesAreCopied) {
    Storm storm;
    storm.level = VIP_SERVICE_UNRELIABLE;
    storm.messages = 500;
    storm.zero_copy_from = 1;
    const auto report = test::run_storm(storm, [](uint64_t) {});
    EXPECT_EQ(report.wrong, "");
    EXPECT_EQ(report.zero_copied, 0u);
}

}  // namespace
}  // namespace viaduct::wire
