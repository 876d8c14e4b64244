// SPDX-License-Identifier: BSD-2-Clause
// A host that can send frames, but does not see those of others: it learns nothing of the connections there are, ends
// none and puts nothing into any. A peer that has come back as another process is noticed all the same, and one
// of another version of the format is told.
#include <gtest/gtest.h>

#include <map>

#include "providers/wire/bytes.hpp"
#include "providers/wire/crc32c.hpp"
#include "providers/wire/header_words.hpp"
#include "providers/wire/link.hpp"
#include "providers/wire/version_answer.hpp"
#include "tests/wire/storm.hpp"

namespace viaduct::wire {
namespace {

using test::address;
using test::end_address;
using test::kSecond;

test::Plan victims_plan(uint64_t seed, uint16_t level) {
    test::Plan p;
    p.seed = seed;
    p.rdma = false;
    p.reliable = level != VIP_SERVICE_UNRELIABLE;
    return p;
}

// A connection, and what its frames show to a host that sees them.
struct VictimPair : test::Pair {
    explicit VictimPair(uint16_t level = VIP_SERVICE_RELIABLE_DELIVERY, const Tuning& t = {})
        : Pair(1, t, victims_plan(1, level), victims_plan(2, level), level) {
        wire.tap = [this](std::byte* frame, uint32_t&, const NicAddress& from) {
            const uint64_t pass = load64(frame + kPassAt);
            const auto kind = static_cast<Kind>(load8(frame + 1));
            if (from == address(1)) acknowledge_of_a = load32(frame + 16);
            if (kind == Kind::send || kind == Kind::confirm) (from == address(1) ? pass_of_b : pass_of_a) = pass;
            if (kind == Kind::accept) pass_of_a = pass;
            return true;
        };
        EXPECT_TRUE(connect());
        talk();
    }
    void talk() {
        const uint64_t most = b.messages_in + 3;
        a.work(a.posted + 3, wire.now);
        EXPECT_TRUE(wire.run(wire.now + kSecond, [&] { return b.messages_in == most; }));
        wire.run_for(10'000'000);
    }
    // What b answers to a frame of no connection, by kind.
    std::map<Kind, int> answers_to(uint32_t destination, Kind kind, int frames) {
        std::map<Kind, int> answers;
        const auto before = wire.tap;
        wire.tap = [&](std::byte* frame, uint32_t&, const NicAddress& from) {
            if (from == address(2) && load32(frame + 8) == destination)
                ++answers[static_cast<Kind>(load8(frame + 1))];
            return false;
        };
        for (int i = 0; i < frames; ++i) forge(kind, destination, a.link, static_cast<uint64_t>(i) + 1, 0);
        wire.tap = before;
        return answers;
    }
    void forge(Kind kind, uint32_t destination, uint32_t source, uint64_t pass, uint32_t sequence,
               uint8_t from = 1) {
        std::byte frame[kHeaderBytes + kConnectBytes] = {};
        Header h;
        h.kind = kind;
        h.flags = kFlagLast;
        h.destination = destination;
        h.source = source;
        h.pass = pass;
        h.sequence = sequence;
        h.acknowledge = acknowledge_of_a;
        h.length = static_cast<uint16_t>(field_bytes(kind));
        seal(frame, h);
        b.node.input({frame, kHeaderBytes + size_t{h.length}}, address(from), wire.now);
    }
    // The number of a's next frame, which is what b expects.
    uint32_t next_of_a() {
        uint32_t next = 0;
        const auto before = wire.tap;
        wire.tap = [&](std::byte* frame, uint32_t&, const NicAddress& from) {
            if (from == address(1)) next = load32(frame + 12);
            return true;
        };
        wire.run_for(Tuning{}.keep_alive);
        wire.tap = before;
        return next;
    }
    uint64_t pass_of_a = 0, pass_of_b = 0;
    uint32_t acknowledge_of_a = 0;
};

TEST(WireForeignFrames, PassesAreDrawnForEachConnectionAndDirection) {
    VictimPair one, two;
    two.a.node.disconnect(two.a.link, two.wire.now);
    EXPECT_NE(one.pass_of_a, one.pass_of_b);
    EXPECT_NE(one.pass_of_a, 0u);
    EXPECT_NE(one.pass_of_b, 0u);
    two.wire.run_for(kSecond);
    const uint64_t before = two.pass_of_b;
    two.b.is_connected = two.a.is_connected = false;
    two.b.requests_heard = 0;
    ASSERT_TRUE(two.connect());
    EXPECT_NE(two.pass_of_b, before);
}

TEST(WireForeignFrames, AnIdThatThereIsLooksLikeOneThatThereIsNot) {
    for (const Kind kind : {Kind::keep_alive, Kind::acknowledge, Kind::send, Kind::confirm, Kind::accept,
                            Kind::disconnect, Kind::disconnected, Kind::reset, Kind::reject, Kind::pending}) {
        SCOPED_TRACE(name_of(kind));
        VictimPair v;
        v.wire.run_for(kSecond);
        const auto known = v.answers_to(v.b.link, kind, 5);
        v.wire.run_for(kSecond);
        const auto other = v.answers_to(v.b.link ^ 0x40000, kind, 5);
        v.wire.run_for(kSecond);
        const auto nowhere = v.answers_to(v.b.link + 100, kind, 5);
        EXPECT_EQ(known, other);
        EXPECT_EQ(known, nowhere);
        EXPECT_TRUE(v.b.is_connected);
        v.talk();
    }
}

TEST(WireForeignFrames, AScanOfAllIdsGetsFewAnswers) {
    VictimPair v;
    v.wire.run_for(kSecond);
    int answers = 0;
    v.wire.tap = [&](std::byte*, uint32_t&, const NicAddress& from) {
        answers += from == address(2);
        return true;
    };
    for (uint32_t generation = 1; generation < 0x10000; ++generation)
        v.forge(Kind::keep_alive, generation << 16 | (v.b.link & 0xFFFF), 5, generation, 0, 9);
    EXPECT_EQ(answers, static_cast<int>(Tuning{}.answers_at_once));
    EXPECT_GE(v.b.node.counters().answers_withheld, 65'000u);
    v.talk();
}

TEST(WireForeignFrames, AForgedFrameWithoutThePassDoesNothing) {
    for (const uint16_t level : {uint16_t{VIP_SERVICE_UNRELIABLE}, uint16_t{VIP_SERVICE_RELIABLE_DELIVERY}}) {
        VictimPair v(level);
        const uint32_t next = v.next_of_a();
        const uint64_t before = v.b.messages_in;
        for (const Kind kind : {Kind::send, Kind::reset, Kind::disconnect, Kind::write, Kind::acknowledge}) {
            for (const uint64_t pass : {uint64_t{0}, v.pass_of_b ^ 1, ~v.pass_of_b, v.pass_of_a}) {
                if (kind == Kind::reset && pass == v.pass_of_a) continue;
                v.forge(kind, v.b.link, v.a.link, pass, next);
            }
        }
        v.wire.run_for(10'000'000);
        EXPECT_EQ(v.b.messages_in, before);
        EXPECT_TRUE(v.b.is_connected && v.a.is_connected);
        v.talk();
        EXPECT_EQ(v.a.wrong + v.b.wrong, "");
    }
}

// A host that sees the frames of others has the pass; the number still has to be the one.
TEST(WireForeignFrames, AResetOutOfSequenceIsAskedBack) {
    VictimPair v;
    const uint32_t next = v.next_of_a();
    for (const uint32_t off : {1u, 64u, 0x80000000u, 0xFFFFFFFFu})
        v.forge(Kind::reset, v.b.link, v.a.link, v.pass_of_a, next + off);
    v.wire.run_for(10'000'000);
    EXPECT_TRUE(v.b.is_connected) << "a has answered nothing that ends it";
    EXPECT_EQ(v.b.node.counters().challenges, 4u);
    for (int i = 0; i < 1000; ++i) v.forge(Kind::reset, v.b.link, v.a.link, v.pass_of_a, next + 7);
    EXPECT_LE(v.b.node.counters().challenges, 4u + Tuning{}.answers_at_once);
    v.talk();
    v.forge(Kind::reset, v.b.link, v.a.link, v.pass_of_a, v.next_of_a());
    EXPECT_EQ(v.b.how_ended, Ended::lost) << "in sequence";
}

// Another process has the address now: its first answer ends the connection, or the one after it.
TEST(WireForeignFrames, APeerThatHasComeBackIsNoticedAtOnce) {
    for (const bool in_flight : {false, true}) {
        VictimPair v;
        v.wire.detach(v.b.node);
        test::Station again(v.wire, 2, Tuning{}, v.b.plan_out, v.b.plan_in);
        const Time began = v.wire.now;
        if (in_flight) v.a.work(v.a.posted + 20, v.wire.now);
        ASSERT_TRUE(v.wire.run(began + kSecond, [&] { return v.a.how_ended.has_value(); }));
        EXPECT_EQ(*v.a.how_ended, Ended::lost);
        EXPECT_LE(v.wire.now - began, in_flight ? Time{1'000'000} : Tuning{}.keep_alive);
        EXPECT_EQ(v.a.node.counters().resets_in - v.a.node.counters().challenges, 1u);
    }
}

// ---- other versions

struct AskingPair : test::Pair {
    AskingPair() : Pair(1, Tuning{}, test::Plan{}, test::Plan{}, VIP_SERVICE_RELIABLE_DELIVERY) {}
    void ask() {
        a.link = a.node.request(&a, end_address(1, "me"), end_address(2, "here"), traits, wire.now + 10 * kSecond,
                                wire.now);
    }
};

TEST(WireForeignFrames, ARequestOfAnotherVersionIsAnsweredWithBoth) {
    AskingPair p;
    std::vector<std::byte> answer;
    int answers = 0;
    p.wire.tap = [&](std::byte* frame, uint32_t& bytes, const NicAddress& from) {
        if (from == address(1)) {
            store8(frame, 7);
        } else {
            answer.assign(frame, frame + bytes);
            ++answers;
        }
        return true;
    };
    p.ask();
    p.wire.run_for(10'000'000);
    ASSERT_EQ(answer.size(), kVersionAnswerBytes);
    EXPECT_EQ(answer[2], std::byte{kVersion});
    EXPECT_EQ(answer[3], std::byte{7});
    EXPECT_EQ(p.b.version_told, 7);
    EXPECT_FALSE(p.a.failure) << "it quotes what a has not sent";
    p.a.node.disconnect(p.a.link, p.wire.now);
    for (int i = 0; i < 1000; ++i) {
        std::byte request[kHeaderBytes + kConnectBytes] = {std::byte{7}, std::byte{1}};
        p.b.node.input(request, address(3), p.wire.now);
    }
    EXPECT_LE(answers, static_cast<int>(Tuning{}.answers_at_once) + 2);
}

TEST(WireForeignFrames, ARequestThatMeetsAnotherVersionEndsAtOnce) {
    AskingPair p;
    std::vector<std::byte> request;
    p.wire.tap = [&](std::byte* frame, uint32_t& bytes, const NicAddress& from) {
        if (from == address(1) && request.empty()) request.assign(frame, frame + bytes);
        return false;
    };
    p.ask();
    ASSERT_FALSE(request.empty());
    std::byte answer[kVersionAnswerBytes];
    const auto say = [&](const std::vector<std::byte>& quoted, uint8_t from) {
        make_version_answer(quoted, answer);
        store8(answer + 2, 9);
        const std::byte zeros[4] = {};
        store32(answer + 4, crc32c(answer + 8, kVersionAnswerBytes - 8, crc32c(zeros, 4, crc32c(answer, 4))));
        p.a.node.input(answer, address(from), p.wire.now);
    };
    std::vector<std::byte> guessed = request;
    guessed[kHeaderBytes] ^= std::byte{1};  // the nonce
    say(guessed, 2);
    say(request, 3);
    EXPECT_FALSE(p.a.failure) << "another process says so";
    say(request, 2);
    ASSERT_TRUE(p.a.failure);
    EXPECT_EQ(*p.a.failure, Status::version);
    EXPECT_EQ(p.a.version_told, 9);
    EXPECT_EQ(p.a.node.links_in_use(), 0u);
}

}  // namespace
}  // namespace viaduct::wire
