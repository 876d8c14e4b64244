// SPDX-License-Identifier: BSD-2-Clause
// Which peers are taken for dead, and when: silence counts only while both the node and the process that carries its
// frames have been running, and less of it is needed where a death is not reported, or the medium reports a peer as
// unreachable. A peer that is stopped for less than the limit loses nothing.
#include <gtest/gtest.h>

#include "providers/wire/bytes.hpp"
#include "providers/wire/link.hpp"
#include "tests/wire/storm.hpp"

namespace viaduct::wire {
namespace {

using test::address;
using test::kSecond;
using test::Pair;
using test::Plan;

constexpr Time kMs = 1'000'000;

Plan sends(uint64_t seed, uint16_t level) {
    Plan p;
    p.seed = seed;
    p.rdma = false;
    p.reliable = level != VIP_SERVICE_UNRELIABLE;
    return p;
}

Tuning attended() {
    Tuning t;
    t.attended = true;
    return t;
}

// Two ends that have a message behind them.
struct Ends : Pair {
    explicit Ends(uint16_t level, const Tuning& t = {})
        : Pair(1, t, sends(1, level), sends(2, level), level) {
        EXPECT_TRUE(connect());
        say_something();
    }
    void say_something() {
        const uint64_t most = b.messages_in + 1;
        a.work(a.posted + 1, wire.now);
        EXPECT_TRUE(wire.run(wire.now + kSecond, [&] { return b.messages_in == most; }));
        wire.run_for(Tuning{}.keep_alive);  // something has come back, too
    }
    void silence_b() {
        wire.tap = [](std::byte*, uint32_t&, const NicAddress& from) { return from == address(1); };
    }
    // As a process that gets no processor: no frame comes of it, and it takes none.
    void stop_b() {
        wire.tap = [](std::byte*, uint32_t&, const NicAddress&) { return false; };
    }
    void let_b_go_on() { wire.tap = nullptr; }
    void report_b_unreachable() { a.port.unreachable.push_back(address(2)); }
    // After how long a gives b up, or the limit of the test.
    Time until_a_ends(Time limit) {
        const Time began = wire.now;
        wire.run(began + limit, [&] { return a.how_ended.has_value(); });
        return a.how_ended ? wire.now - began : limit;
    }
    // A process is not running: it sees no frame, no time.
    void freeze_both(Time how_long) { wire.now += how_long; }
    bool both_live() const { return a.is_connected && b.is_connected; }
};

class WireLife : public testing::TestWithParam<uint16_t> {};

TEST_P(WireLife, APeerWhoseDeathIsNotReportedIsGivenUpSoon) {
    Ends line(GetParam());
    line.silence_b();
    const Time took = line.until_a_ends(5 * kSecond);
    EXPECT_GE(took, Tuning{}.silence - Tuning{}.keep_alive);
    EXPECT_LE(took, Tuning{}.silence + Tuning{}.keep_alive);
}

TEST_P(WireLife, APeerWhoseDeathWouldBeToldMayWaitForAProcessorForLonger) {
    Ends line(GetParam(), attended());
    line.silence_b();
    line.a.work(line.a.posted + 3, line.wire.now);  // it waits for its acknowledgement
    line.wire.run_for(8 * kSecond);
    EXPECT_TRUE(line.both_live());
    line.wire.tap = nullptr;
    line.wire.run_for(kSecond);
    EXPECT_EQ(line.a.good_count, line.a.posted);
    line.say_something();
    line.silence_b();
    const Time took = line.until_a_ends(20 * kSecond);
    EXPECT_GE(took, Tuning{}.attended_silence - Tuning{}.keep_alive);
    EXPECT_LE(took, Tuning{}.attended_silence + Tuning{}.keep_alive) << "its host may have died with it";
}

// Neither its silence nor the work that waits for it ends the connection.
TEST_P(WireLife, APeerThatIsStoppedForEightSecondsLosesNothing) {
    Ends line(GetParam(), attended());
    for (int i = 0; i < 2; ++i) {
        line.a.work(line.a.posted + 3, line.wire.now);
        line.stop_b();
        line.wire.run_for(8 * kSecond);
        line.let_b_go_on();
        line.wire.run_for(kSecond);
        ASSERT_TRUE(line.both_live());
        EXPECT_EQ(line.a.good_count, line.a.posted);
    }
    line.say_something();
}

// Acknowledgements that come no more show nothing of the peer as long as nothing else comes of it.
TEST(WireLife, WithoutProgressAConnectionIsGivenUpWhileThePeerIsHeard) {
    Ends line(VIP_SERVICE_RELIABLE_DELIVERY, attended());
    line.wire.tap = [](std::byte* frame, uint32_t&, const NicAddress&) {
        return !is_sequenced(static_cast<Kind>(load8(frame + kKindAt)));
    };
    line.a.work(line.a.posted + 3, line.wire.now);
    line.b.work(line.b.posted + 3, line.wire.now);  // so its signs of life are rare
    const Time took = line.until_a_ends(20 * kSecond);
    EXPECT_EQ(line.a.how_ended, Ended::gave_up);
    EXPECT_GE(took, Tuning{}.give_up);
    EXPECT_LE(took, Tuning{}.give_up + 2 * Tuning{}.max_timeout);
}

// ---- what the medium reports

TEST_P(WireLife, AnUnreachablePeerIsGivenUpSoon) {
    Ends line(GetParam(), attended());
    line.silence_b();
    line.wire.run_for(Tuning{}.keep_alive);
    line.report_b_unreachable();
    const Time took = Tuning{}.keep_alive + line.until_a_ends(20 * kSecond);
    EXPECT_GE(took, Tuning{}.silence - Tuning{}.keep_alive) << "a report alone ends nothing";
    EXPECT_LE(took, Tuning{}.silence + Tuning{}.keep_alive);
    EXPECT_EQ(line.a.how_ended, Ended::lost);
}

TEST_P(WireLife, APeerThatIsReportedLateIsGivenUpThen) {
    Ends line(GetParam(), attended());
    line.silence_b();
    line.wire.run_for(3 * kSecond);
    EXPECT_FALSE(line.a.how_ended);
    line.report_b_unreachable();
    EXPECT_LE(line.until_a_ends(20 * kSecond), Tuning{}.keep_alive);
}

// Any host can forge such a report.
TEST_P(WireLife, AReportThatALivingPeerIsUnreachableEndsNothing) {
    Ends line(GetParam(), attended());
    for (int i = 0; i < 100; ++i) {
        line.report_b_unreachable();
        line.wire.run_for(50 * kMs);
    }
    EXPECT_TRUE(line.both_live());
    line.say_something();
    line.stop_b();
    line.wire.run_for(8 * kSecond);
    EXPECT_TRUE(line.both_live()) << "frames of the peer came after the reports";
    line.let_b_go_on();
    line.say_something();
}

TEST_P(WireLife, AReportConcernsItsAddressAlone) {
    Ends line(GetParam(), attended());
    line.silence_b();
    line.a.port.unreachable.push_back(address(3));
    line.wire.run_for(3 * kSecond);
    EXPECT_FALSE(line.a.how_ended);
    EXPECT_TRUE(line.a.port.unreachable.empty()) << "it was taken";
}

// The peer's hand-shake says it, whatever we are ourselves.
TEST(WireLife, EachEndSaysWhetherItsDeathWouldBeTold) {
    Tuning t = attended();
    Ends line(VIP_SERVICE_RELIABLE_DELIVERY);
    test::SimulatedWire& wire = line.wire;
    test::Station other(wire, 3, t, sends(3, VIP_SERVICE_RELIABLE_DELIVERY),
                        sends(1, VIP_SERVICE_RELIABLE_DELIVERY));
    other.node.listen(test::end_address(3, "there"), &other, wire.now);
    const LinkId link =
        line.a.node.request(&line.a, test::end_address(1, "me"), test::end_address(3, "there"), line.traits,
                            wire.now + kSecond, wire.now);
    ASSERT_TRUE(wire.run(wire.now + kSecond, [&] { return other.requests_heard != 0; }));
    Status why = Status::ok;
    other.link = other.node.accept(other.incoming_id, &other, line.traits, wire.now, &why);
    ASSERT_TRUE(wire.run(wire.now + kSecond, [&] { return other.is_connected; }));
    line.a.node.start(link, wire.now);
    other.node.start(other.link, wire.now);
    wire.run_for(100 * kMs);
    wire.tap = [](std::byte*, uint32_t&, const NicAddress&) { return false; };
    wire.run_for(Tuning{}.silence + Tuning{}.keep_alive);
    EXPECT_FALSE(other.is_connected) << "a has said that no process would report it";
    LinkReport report;
    ASSERT_TRUE(line.a.node.report(link, &report));
    EXPECT_EQ(report.state, static_cast<uint32_t>(LinkState::connected)) << "the other would be told of";
}

TEST_P(WireLife, AStoppedProcessDoesNotTakeThatForSilence) {
    Ends line(GetParam());
    for (int i = 0; i < 3; ++i) {
        line.freeze_both(3 * kSecond);
        line.wire.run_for(50 * kMs);
        EXPECT_TRUE(line.both_live());
    }
    line.say_something();
    line.silence_b();
    EXPECT_LE(line.until_a_ends(5 * kSecond), Tuning{}.silence + Tuning{}.keep_alive);
}

TEST_P(WireLife, WhileFramesAreNotCarriedThereIsNoSilence) {
    Ends line(GetParam());
    line.a.port.still = true;
    line.silence_b();
    line.wire.run_for(5 * kSecond);
    EXPECT_TRUE(line.a.is_connected);
    EXPECT_FALSE(line.a.how_ended);
    line.wire.tap = nullptr;
    line.a.port.still = false;
    line.wire.run_for(200 * kMs);
    EXPECT_TRUE(line.both_live());
    line.say_something();
    line.silence_b();
    EXPECT_LE(line.until_a_ends(5 * kSecond), Tuning{}.silence + Tuning{}.keep_alive);
}

// Nor does work fail for want of an acknowledgement that was not carried.
TEST(WireLife, WorkWaitsWhileFramesAreNotCarried) {
    Ends line(VIP_SERVICE_RELIABLE_DELIVERY);
    line.a.port.still = true;
    line.wire.tap = [](std::byte*, uint32_t&, const NicAddress& from) { return !(from == address(1)); };
    line.b.port.still = true;
    line.a.work(line.a.posted + 3, line.wire.now);
    line.wire.run_for(5 * kSecond);
    line.wire.tap = nullptr;
    line.a.port.still = line.b.port.still = false;
    EXPECT_TRUE(line.wire.run(line.wire.now + kSecond, [&] { return line.a.good_count == line.a.posted; }));
    EXPECT_TRUE(line.both_live());
}

INSTANTIATE_TEST_SUITE_P(EachLevel, WireLife,
                         testing::Values(VIP_SERVICE_UNRELIABLE, VIP_SERVICE_RELIABLE_DELIVERY),
                         [](const auto& level) {
                             return level.param == VIP_SERVICE_UNRELIABLE ? "Unreliable" : "Reliable";
                         });

// ---- connecting

struct AcceptingPair : Pair {
    explicit AcceptingPair(const Tuning& t = {})
        : Pair(1, t, sends(1, VIP_SERVICE_RELIABLE_DELIVERY), sends(2, VIP_SERVICE_RELIABLE_DELIVERY),
               VIP_SERVICE_RELIABLE_DELIVERY) {
        b.node.listen(test::end_address(2, "here"), &b, wire.now);
        a.link = a.node.request(&a, test::end_address(1, "me"), test::end_address(2, "here"), traits,
                                wire.now + 60 * kSecond, wire.now);
        EXPECT_TRUE(wire.run(wire.now + kSecond, [&] { return b.requests_heard != 0; }));
    }
    bool accept() {
        Status why = Status::ok;
        b.link = b.node.accept(b.incoming_id, &b, traits, wire.now, &why);
        return b.link != 0;
    }
};

TEST(WireLife, AnAcceptIsNotWithdrawnByAStoppedProcess) {
    AcceptingPair pair;
    bool answers = false;
    pair.wire.tap = [&](std::byte*, uint32_t&, const NicAddress& from) { return answers || from == address(1); };
    ASSERT_TRUE(pair.accept());
    pair.wire.run_for(Tuning{}.accept_timeout / 2);
    pair.wire.now += 3 * kSecond;  // b's accept has not come through, and now neither of them runs
    answers = true;
    EXPECT_TRUE(pair.wire.run(pair.wire.now + kSecond, [&] { return pair.a.is_connected && pair.b.is_connected; }));
    EXPECT_FALSE(pair.b.failure);
}

TEST(WireLife, ARequestIsNotOldBecauseItsListenerWasNotRunning) {
    AcceptingPair pair;
    pair.wire.run_for(200 * kMs);
    pair.wire.now += 3 * kSecond;
    pair.b.node.advance(pair.wire.now);
    EXPECT_TRUE(pair.accept());
    EXPECT_TRUE(pair.wire.run(pair.wire.now + kSecond, [&] { return pair.a.is_connected && pair.b.is_connected; }));
}

TEST(WireLife, WhoseDeathWouldBeToldMayBeLateToConnectToo) {
    AcceptingPair pair(attended());
    bool heard = false;
    pair.wire.tap = [&](std::byte*, uint32_t&, const NicAddress& from) { return heard || from == address(2); };
    pair.wire.run_for(8 * kSecond);
    ASSERT_TRUE(pair.accept());
    pair.wire.run_for(8 * kSecond);
    heard = true;
    EXPECT_TRUE(pair.wire.run(pair.wire.now + kSecond, [&] { return pair.a.is_connected && pair.b.is_connected; }));
    EXPECT_FALSE(pair.b.failure);
}

TEST(WireLife, AnAcceptToAnUnreachableRequesterFailsSoon) {
    AcceptingPair pair(attended());
    pair.wire.tap = [](std::byte*, uint32_t&, const NicAddress& from) { return from == address(2); };
    ASSERT_TRUE(pair.accept());
    const Time began = pair.wire.now;
    pair.wire.run_for(100 * kMs);
    EXPECT_FALSE(pair.b.failure);
    pair.b.port.unreachable.push_back(address(1));
    EXPECT_TRUE(pair.wire.run(began + 5 * kSecond, [&] { return pair.b.failure.has_value(); }));
    EXPECT_GE(pair.wire.now - began, Tuning{}.accept_timeout - kMs);
    EXPECT_LE(pair.wire.now - began, Tuning{}.accept_timeout + Tuning{}.max_try);
    EXPECT_EQ(pair.b.failure, Status::timeout);
}

}  // namespace
}  // namespace viaduct::wire
