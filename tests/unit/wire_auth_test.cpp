// SPDX-License-Identifier: BSD-2-Clause
// With a key: a host that sees all frames and can send any gets nothing into a connection, and nothing out of it.
#include <gtest/gtest.h>

#include <cstring>

#include "providers/wire/auth.hpp"
#include "providers/wire/bytes.hpp"
#include "providers/wire/link.hpp"
#include "tests/wire/storm.hpp"

namespace viaduct::wire {
namespace {

using test::address;
using test::end_address;
using test::kSecond;

constexpr Key kCommonKey{0x0706050403020100, 0x0f0e0d0c0b0a0908};

// The vectors of the authors' reference implementation: the input is 00, 01, 02, ...
TEST(WireAuth, SipHashGivesThePublishedAnswers) {
    static constexpr unsigned char kExpected[16][8] = {
        {0x31, 0x0e, 0x0e, 0xdd, 0x47, 0xdb, 0x6f, 0x72}, {0xfd, 0x67, 0xdc, 0x93, 0xc5, 0x39, 0xf8, 0x74},
        {0x5a, 0x4f, 0xa9, 0xd9, 0x09, 0x80, 0x6c, 0x0d}, {0x2d, 0x7e, 0xfb, 0xd7, 0x96, 0x66, 0x67, 0x85},
        {0xb7, 0x87, 0x71, 0x27, 0xe0, 0x94, 0x27, 0xcf}, {0x8d, 0xa6, 0x99, 0xcd, 0x64, 0x55, 0x76, 0x18},
        {0xce, 0xe3, 0xfe, 0x58, 0x6e, 0x46, 0xc9, 0xcb}, {0x37, 0xd1, 0x01, 0x8b, 0xf5, 0x00, 0x02, 0xab},
        {0x62, 0x24, 0x93, 0x9a, 0x79, 0xf5, 0xf5, 0x93}, {0xb0, 0xe4, 0xa9, 0x0b, 0xdf, 0x82, 0x00, 0x9e},
        {0xf3, 0xb9, 0xdd, 0x94, 0xc5, 0xbb, 0x5d, 0x7a}, {0xa7, 0xad, 0x6b, 0x22, 0x46, 0x2f, 0xb3, 0xf4},
        {0xfb, 0xe5, 0x0e, 0x86, 0xbc, 0x8f, 0x1e, 0x75}, {0x90, 0x3d, 0x84, 0xc0, 0x27, 0x56, 0xea, 0x14},
        {0xee, 0xf2, 0x7a, 0x8e, 0x90, 0xca, 0x23, 0xf7}, {0xe5, 0x45, 0xbe, 0x49, 0x61, 0xca, 0x29, 0xa1}};
    unsigned char in[16];
    for (unsigned char i = 0; i < 16; ++i) in[i] = i;
    for (size_t n = 0; n < 16; ++n) {
        uint64_t expected;
        std::memcpy(&expected, kExpected[n], sizeof expected);
        if (std::endian::native == std::endian::big) expected = __builtin_bswap64(expected);
        for (size_t first = 0; first <= n; ++first) {
            SipHash hash(kCommonKey);
            hash.add(in, first);
            hash.add(in + first, n - first);
            EXPECT_EQ(hash.finish(), expected) << n << " bytes, " << first << " of them first";
        }
    }
}

TEST(WireAuth, AKeyIsReadAsItsDigits) {
    Key key;
    ASSERT_TRUE(read_key(" 000102030405060708090A0b0c0d0e0f\n", &key));
    EXPECT_EQ(key, kCommonKey);
    for (const char* const bad : {"", "0001", "000102030405060708090a0b0c0d0e0g", "000102030405060708090a0b0c0d0e0f0",
                                  "00 0102030405060708090a0b0c0d0e0f"})
        EXPECT_FALSE(read_key(bad, &key)) << bad;
}

TEST(WireAuth, SequenceNumbersGoOnBeyondTheirWrap) {
    WholeSequence s;
    s.begin(0xFFFFFFF0);
    EXPECT_EQ(s.of(0xFFFFFFF5), 0xFFFFFFF5u);
    EXPECT_EQ(s.of(5), 0x100000005u);
    s.pass(s.of(5));
    EXPECT_EQ(s.of(0xFFFFFFF5), 0xFFFFFFF5u);
    EXPECT_EQ(s.of(6), 0x100000006u);
}

struct KeyedPair : test::Pair {
    KeyedPair(const std::optional<Key>& ours, const std::optional<Key>& theirs)
        : Pair(1, Tuning{}, test::Plan{}, test::Plan{}, VIP_SERVICE_RELIABLE_DELIVERY),
          client(wire, 11, with(ours), plan(1), plan(2)),
          server(wire, 12, with(theirs), plan(2), plan(1)) {}
    static Tuning with(const std::optional<Key>& key) {
        Tuning t;
        t.key = key;
        return t;
    }
    static test::Plan plan(uint64_t seed) {
        test::Plan p;
        p.seed = seed;
        p.rdma = false;
        return p;
    }
    bool meet() {
        server.node.listen(end_address(12, "here"), &server, wire.now);
        client.link = client.node.request(&client, end_address(11, "me"), end_address(12, "here"), traits,
                                          wire.now + kSecond, wire.now);
        const int heard = server.requests_heard;
        if (!wire.run(wire.now + kSecond, [&] { return server.requests_heard != heard; })) return false;
        Status why = Status::ok;
        server.link = server.node.accept(server.incoming_id, &server, traits, wire.now, &why);
        wire.run(wire.now + kSecond, [&] { return client.is_connected && server.is_connected; });
        client.node.start(client.link, wire.now);
        server.node.start(server.link, wire.now);
        return client.is_connected && server.is_connected;
    }
    test::Station client, server;
};

TEST(WireAuth, WorkOfAllKindsGoesThroughBadWeather) {
    for (const uint16_t level : {VIP_SERVICE_UNRELIABLE, VIP_SERVICE_RELIABLE_DELIVERY}) {
        for (const uint32_t zero_copy_from : {UINT32_MAX, 512u}) {
            test::Storm storm;
            storm.messages = 3000;
            storm.level = level;
            storm.weather = test::bad_weather();
            storm.key = kCommonKey;
            storm.zero_copy_from = zero_copy_from;
            EXPECT_EQ(test::run_storm(storm, [](uint64_t) {}).wrong, "");
        }
    }
}

TEST(WireAuth, EndsWithoutTheSameKeyDoNotMeetAndSayWhy) {
    struct Case {
        std::optional<Key> ours, theirs;
        AuthFailure why;
    };
    for (const Case& c : {Case{kCommonKey, Key{1, 2}, AuthFailure::other_key},
                          Case{kCommonKey, {}, AuthFailure::no_key}, Case{{}, kCommonKey, AuthFailure::no_tag}}) {
        KeyedPair m(c.ours, c.theirs);
        int answers = 0;
        m.wire.tap = [&](std::byte*, uint32_t&, const NicAddress& from) {
            answers += from == address(12);
            return true;
        };
        EXPECT_FALSE(m.meet());
        EXPECT_EQ(m.server.auth_failure, c.why);
        EXPECT_EQ(m.server.times_not_authentic, 1) << "once, not for each frame";
        EXPECT_EQ(answers, 0) << "a frame without a valid tag is not answered";
        EXPECT_EQ(m.server.requests_heard, 0);
    }
}

// A sniffer has every frame of an earlier connection and of this one, and sends them again and changed.
TEST(WireAuth, NothingThatWasSentIsGoodAgainOrElsewhere) {
    KeyedPair m(kCommonKey, kCommonKey);
    struct Sniffed {
        std::vector<std::byte> bytes;
        bool from_client;
    };
    std::vector<Sniffed> earlier, here;
    std::vector<Sniffed>* into = &earlier;
    m.wire.tap = [&](std::byte* frame, uint32_t& bytes, const NicAddress& from) {
        into->push_back({{frame, frame + bytes}, from == address(11)});
        return true;
    };
    ASSERT_TRUE(m.meet());
    m.client.work(10, m.wire.now);
    ASSERT_TRUE(m.wire.run(m.wire.now + kSecond, [&] { return m.client.good_count == 10; }));
    m.client.node.disconnect(m.client.link, m.wire.now);
    m.wire.run_for(kSecond);
    m.client.is_connected = m.server.is_connected = false;
    m.server.how_ended.reset();
    m.client.posted = m.client.finished_count = m.client.good_count = m.server.in_next = 0;
    into = &here;
    ASSERT_TRUE(m.meet());
    m.client.work(10, m.wire.now);
    ASSERT_TRUE(m.wire.run(m.wire.now + kSecond, [&] { return m.client.good_count == 10; }));
    const uint64_t before = m.server.messages_in;
    const std::vector<Sniffed> all[] = {earlier, here};
    std::vector<Sniffed> ignored;
    into = &ignored;
    for (const auto& frames : all) {
        for (const Sniffed& s : frames) {
            const auto kind = static_cast<Kind>(load8(s.bytes.data() + 1));
            if (kind == Kind::request) continue;  // that one is asked for again, and comes to nothing
            test::Station& target = s.from_client ? m.server : m.client;
            const NicAddress from = address(s.from_client ? 11 : 12);
            target.node.input(s.bytes, from, m.wire.now);
            // With the ids of now; sealed again, as any host can.
            Frame f;
            if (read_frame(s.bytes, &f) != Flaw::none) continue;
            std::vector<std::byte> changed = s.bytes;
            f.header.destination = target.link;
            f.header.source = s.from_client ? m.client.link : m.server.link;
            for (const bool tagged : {true, false}) {
                f.header.flags = static_cast<uint16_t>(tagged ? f.header.flags | kFlagTagged
                                                              : f.header.flags & ~kFlagTagged);
                for (const Kind as : {kind, Kind::reset, Kind::disconnected}) {
                    Header h = f.header;
                    h.kind = as;
                    if (as != kind) h.length = 0;
                    seal(changed.data(), h);
                    target.node.input({changed.data(), kHeaderBytes + size_t{h.length}}, from, m.wire.now);
                }
            }
        }
    }
    m.wire.run_for(100'000'000);
    EXPECT_EQ(m.server.messages_in, before);
    EXPECT_TRUE(m.client.is_connected && m.server.is_connected);
    EXPECT_FALSE(m.server.how_ended);
    m.client.work(20, m.wire.now);
    EXPECT_TRUE(m.wire.run(m.wire.now + kSecond, [&] { return m.client.good_count == 20; }));
    EXPECT_EQ(m.server.wrong + m.client.wrong, "");
}

// All of it in order, and even the pass, which any host has seen in the hand-shake.
TEST(WireAuth, AMessageWithoutATagIsNotTaken) {
    KeyedPair m(kCommonKey, kCommonKey);
    Header last;
    uint64_t told = 0;
    m.wire.tap = [&](std::byte* frame, uint32_t& bytes, const NicAddress& from) {
        Frame f;
        if (read_frame({frame, bytes}, &f) != Flaw::none) return true;
        if (from == address(11)) last = f.header;
        Connect c;
        if (f.header.kind == Kind::accept && read_connect(f, &c) == Flaw::none) told = c.pass;
        return true;
    };
    ASSERT_TRUE(m.meet());
    m.client.work(3, m.wire.now);
    ASSERT_TRUE(m.wire.run(m.wire.now + kSecond, [&] { return m.client.good_count == 3; }));
    m.wire.run_for(Tuning{}.keep_alive);
    const uint64_t before = m.server.messages_in;
    ASSERT_NE(told, 0u);
    for (const uint16_t tagged : {uint16_t{0}, uint16_t{kFlagTagged}}) {
        std::byte frame[kHeaderBytes + kMessageBytes + 64] = {};
        const uint32_t length = m.server.plan_in.length(m.server.in_next);
        Header h = last;
        h.kind = Kind::send;
        h.flags = static_cast<uint16_t>(kFlagLast | tagged);
        h.pass = told;
        h.length = static_cast<uint16_t>(kMessageBytes + std::min(length, 64u));
        write_message(frame + kHeaderBytes, {static_cast<uint32_t>(before), 0, std::min(length, 64u), 0});
        seal(frame, h);
        m.server.node.input({frame, kHeaderBytes + size_t{h.length}}, address(11), m.wire.now);
    }
    EXPECT_EQ(m.server.messages_in, before);
    EXPECT_EQ(m.server.wrong, "");
    EXPECT_TRUE(m.server.is_connected);
}

TEST(WireAuth, EachDirectionOfEachConnectionHasItsKey) {
    EXPECT_NE(key_of_direction(kCommonKey, 1, 2), key_of_direction(kCommonKey, 2, 1));
    EXPECT_NE(key_of_direction(kCommonKey, 1, 2), key_of_direction(kCommonKey, 1, 3));
    EXPECT_NE(key_of_direction(kCommonKey, 1, 2), key_of_direction(kCommonKey, 3, 2));
    EXPECT_NE(key_of_direction(kCommonKey, 1, 2), key_of_direction(Key{1, 2}, 1, 2));
    const Key key = key_of_direction(kCommonKey, 1, 2);
    EXPECT_NE(key.low, key.high);
}

TEST(WireAuth, AnEndIsToldAndADeadPeerIsNoticed) {
    KeyedPair m(kCommonKey, kCommonKey);
    ASSERT_TRUE(m.meet());
    m.client.node.disconnect(m.client.link, m.wire.now);
    m.wire.run_for(10'000'000);
    EXPECT_EQ(m.server.how_ended, Ended::by_peer);
    EXPECT_EQ(m.client.node.links_in_use() + m.server.node.links_in_use(), 0u);
    KeyedPair n(kCommonKey, kCommonKey);
    ASSERT_TRUE(n.meet());
    n.wire.detach(n.server.node);
    test::Station again(n.wire, 12, KeyedPair::with(kCommonKey), KeyedPair::plan(2), KeyedPair::plan(1));
    n.wire.run_for(Tuning{}.silence + Tuning{}.keep_alive);
    EXPECT_EQ(n.client.how_ended, Ended::lost) << "a node without the connection cannot answer for it";
}

}  // namespace
}  // namespace viaduct::wire
