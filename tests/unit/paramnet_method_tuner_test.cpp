// SPDX-License-Identifier: BSD-2-Clause
// Which method long messages take, by given times; and that they arrive whichever it is.
#include "providers/paramnet/method_tuner.hpp"

#include <utility>

#include "paramnet_fixture.hpp"
#include "providers/paramnet/endpoint.hpp"

namespace viaduct::paramnet::test {
namespace {

constexpr uint32_t kK = 1024;

// MethodTuner that number their trials themselves.
struct OwnTuner : MethodTuner {
    using MethodTuner::MethodTuner;
    uint32_t last = 0;
    Choice next(uint32_t bytes, bool can_pull, bool steady) {
        return MethodTuner::next(bytes, can_pull, steady, &last);
    }
};

// A machine on which a message takes so many picoseconds a byte by each method, plus a fixed time.
struct Machine {
    uint32_t plain, streaming, pull;
    uint32_t pull_ns = 700;  // of one system call
    uint32_t ns(Method method, uint32_t bytes) const {
        switch (method) {
            case Method::plain:
                return 200 + static_cast<uint32_t>(uint64_t{bytes} * plain / 1000);
            case Method::streaming:
                return 200 + static_cast<uint32_t>(uint64_t{bytes} * streaming / 1000);
            default:
                return pull_ns + static_cast<uint32_t>(uint64_t{bytes} * pull / 1000);
        }
    }
};

// Sends `count` messages of that length, each answered before the next; the method of the one behind them.
Method learn(OwnTuner& methods, const Machine& machine, uint32_t bytes, uint32_t count = 100) {
    for (uint32_t i = 0; i < count; ++i) {
        const MethodTuner::Choice choice = methods.next(bytes, true, true);
        if (choice.trial != 0) methods.answered(choice.trial, machine.ns(choice.method, bytes));
    }
    return methods.next(bytes, true, true).method;
}

constexpr MethodTuner::Limits kAllLearnt{kLearnt, kLearnt};

TEST(MethodTunerTest, TakeWhatHasProvedTheFastestOnThisMachine) {
    const Machine pulls_well{110, 150, 35}, copies_well{20, 60, 60}, streams_well{500, 70, 90};
    for (const uint32_t bytes : {64 * kK, 256 * kK, kK * kK}) {
        SCOPED_TRACE(bytes);
        OwnTuner a(kAllLearnt), b(kAllLearnt), c(kAllLearnt);
        EXPECT_EQ(learn(a, pulls_well, bytes), Method::pull);
        EXPECT_EQ(learn(b, copies_well, bytes), Method::plain);
        EXPECT_EQ(learn(c, streams_well, bytes), Method::streaming);
    }
}

TEST(MethodTunerTest, ChooseForEachLengthOfItsOwn) {
    // The system call's fixed cost weighs at 16 KiB and does not at 1 MiB.
    const Machine machine{100, 150, 35, 3000};
    OwnTuner methods(kAllLearnt);
    EXPECT_EQ(learn(methods, machine, 16 * kK), Method::plain);
    EXPECT_EQ(learn(methods, machine, kK * kK), Method::pull);
    EXPECT_EQ(methods.next(16 * kK, true, true).method, Method::plain);
    EXPECT_EQ(methods.next(5 * kK, true, true).trial, 0u) << "short: nothing to learn";
    EXPECT_EQ(methods.next(5 * kK, true, true).method, Method::plain);
}

TEST(MethodTunerTest, StayPlainWithoutAnotherLookWhereThatIsKnown) {
    OwnTuner methods(kAllLearnt);
    EXPECT_TRUE(methods.stays_plain(8 * kK - 1)) << "short: nothing to learn";
    EXPECT_FALSE(methods.stays_plain(16 * kK)) << "not known yet";
    ASSERT_EQ(learn(methods, {20, 60, 60}, 16 * kK), Method::plain);
    uint32_t plain = 0;
    while (methods.stays_plain(16 * kK)) ++plain;
    EXPECT_GT(plain, 1000u);
    EXPECT_LT(plain, 4096u) << "it is tried anew";
    EXPECT_EQ(learn(methods, {200, 60, 60}, 16 * kK), Method::streaming);
    EXPECT_FALSE(methods.stays_plain(16 * kK));
    OwnTuner pulls(kAllLearnt);
    ASSERT_EQ(learn(pulls, {110, 150, 35}, 16 * kK), Method::pull);
    EXPECT_FALSE(pulls.stays_plain(16 * kK));
    OwnTuner late(kAllLearnt);
    ASSERT_EQ(learn(late, {20, 60, 60}, 16 * kK), Method::plain);
    late.not_fetched(1);
    EXPECT_FALSE(late.stays_plain(16 * kK)) << "next() counts those that stay in the ring";
    OwnTuner set({65536, 131072});
    EXPECT_FALSE(set.stays_plain(5 * kK)) << "set, not learnt";
}

TEST(MethodTunerTest, DoNotMakeTheSenderWaitForALittle) {
    const Machine machine{100, 100, 93, 0};
    OwnTuner methods(kAllLearnt);
    EXPECT_NE(learn(methods, machine, 256 * kK), Method::pull);
}

TEST(MethodTunerTest, LeaveAloneWhatIsSet) {
    OwnTuner set({65536, 131072});
    for (uint32_t i = 0; i < 100; ++i) {
        EXPECT_EQ(set.next(32 * kK, true, true).method, Method::plain);
        EXPECT_EQ(set.next(64 * kK, true, true).method, Method::streaming);
        EXPECT_EQ(set.next(128 * kK, false, true).method, Method::streaming);
        const MethodTuner::Choice choice = set.next(128 * kK, true, true);
        EXPECT_EQ(choice.method, Method::pull);
        EXPECT_EQ(choice.trial, 0u);
    }
    OwnTuner never({0, 0});
    EXPECT_EQ(never.next(kK * kK, true, true).method, Method::plain);

    // One set, the other learnt.
    const Machine machine{110, 20, 35};
    OwnTuner streams_never({0, kLearnt});
    EXPECT_EQ(learn(streams_never, machine, 64 * kK), Method::pull);
    OwnTuner pulls_never({kLearnt, 0});
    EXPECT_EQ(learn(pulls_never, Machine{110, 150, 35}, 64 * kK), Method::plain);
}

TEST(MethodTunerTest, TryNothingWhereTrialsAreOff) {
    OwnTuner off({kLearnt, kLearnt, false});
    EXPECT_EQ(learn(off, {20, 60, 35}, 64 * kK, 20000), Method::streaming);
    EXPECT_EQ(off.last, 0u);
}

TEST(MethodTunerTest, AreFetchedOnTrialOnlyBehindAMessageThatTheReceiverTookInTime) {
    OwnTuner methods(kAllLearnt);
    uint32_t fetched = 0;
    for (uint32_t i = 0; i < 20000; ++i) {
        const MethodTuner::Choice choice = methods.next(64 * kK, true, true);
        fetched += choice.method == Method::pull;
        if (choice.trial != 0) methods.answered(choice.trial, 5'000'000);
    }
    EXPECT_EQ(fetched, 0u) << "the receiver computes";
}

TEST(MethodTunerTest, TryNothingBeforeTheRingsPagesAreThere) {
    OwnTuner methods(kAllLearnt);
    for (uint32_t i = 0; i < 100; ++i) EXPECT_EQ(methods.next(64 * kK, true, false).trial, 0u);
}

TEST(MethodTunerTest, StayInTheRingWhileTheReceiverDoesNotLook) {
    const Machine machine{110, 150, 35};
    OwnTuner late(kAllLearnt);
    EXPECT_NE(learn(late, Machine{5'000'000, 5'000'000, 1'000'000}, 64 * kK), Method::pull)
        << "times of a computing process tell nothing";

    OwnTuner methods(kAllLearnt);
    ASSERT_EQ(learn(methods, machine, 64 * kK), Method::pull);
    ASSERT_EQ(learn(methods, machine, kK * kK), Method::pull);
    methods.not_fetched(17);
    const auto in_ring = [&] {
        uint32_t n = 0;
        while (methods.next(64 * kK, true, true).method != Method::pull) ++n;
        return n;
    };
    EXPECT_EQ(methods.next(kK * kK, true, true).method, Method::pull) << "the ring would not take it either";
    const uint32_t first = in_ring();
    EXPECT_GT(first, 10u);
    methods.not_fetched(18);
    methods.not_fetched(18);  // looked at twice
    const uint32_t second = in_ring();
    EXPECT_GT(second, first);
    EXPECT_LT(second, 3 * first);
    for (uint32_t i = 0; i < 1000; ++i) EXPECT_EQ(methods.next(64 * kK, true, true).method, Method::pull);
    methods.not_fetched(19);
    EXPECT_LT(in_ring(), second) << "once in a thousand is no habit";
}

TEST(MethodTunerTest, GoOnWhenATrialIsNeverAnswered) {
    OwnTuner methods(kAllLearnt);
    uint32_t trials = 0;
    for (uint32_t i = 0; i < 60000; ++i) {
        const MethodTuner::Choice choice = methods.next(64 * kK, true, true);
        if (choice.trial != 0) {
            ++trials;
            methods.answered(choice.trial + 1, 1);  // what was never asked
            methods.answered(0, 1);
        }
    }
    EXPECT_GE(trials, 12u);
    EXPECT_NE(methods.next(64 * kK, true, true).method, Method::pull);
}

TEST(MethodTunerTest, GoAsFastAsTheSlowerEnd) {
    // A receiver that finds everything in the ring takes it out fast: what it took to get there counts.
    OwnTuner methods(kAllLearnt);
    for (uint32_t i = 0; i < 100; ++i) {
        const MethodTuner::Choice choice = methods.next(64 * kK, true, true);
        if (choice.trial == 0) continue;
        if (choice.method != Method::pull) methods.trial().sent(choice.trial, 8000);
        methods.answered(choice.trial, choice.method == Method::pull ? 3000 : 2000);
    }
    EXPECT_EQ(methods.next(64 * kK, true, true).method, Method::pull);
}

TEST(MethodTunerTest, LearnAnewWhenTheMachineHasChanged) {
    OwnTuner methods(kAllLearnt);
    ASSERT_EQ(learn(methods, {110, 150, 35}, 64 * kK), Method::pull);
    EXPECT_EQ(learn(methods, {20, 150, 90}, 64 * kK, 5000), Method::plain);
}

// Through a connection: `a` sends one message to `b`, which polls until it is there.
void carry(TestPair& pair, uint32_t size, uint32_t seed) {
    std::memset(pair.b.data(), 0xEE, size + 1);
    fill(pair.a.data(), size, seed);
    pair.b.receive(pair.b.data(), size);
    pair.a.send(pair.a.data(), size);
    VIP_DESCRIPTOR* received = pair.b.wait_recv();
    ASSERT_NE(received, nullptr);
    ASSERT_EQ(status_of(received), uint32_t{VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE});
    ASSERT_EQ(received->CS.Length, size);
    ASSERT_TRUE(filled(pair.b.data(), size, seed));
    ASSERT_EQ(pair.b.data()[size], std::byte{0xEE});
    VIP_DESCRIPTOR* sent = pair.a.wait_send();
    ASSERT_NE(sent, nullptr);
    ASSERT_EQ(status_of(sent), uint32_t{VIP_STATUS_DONE | VIP_STATUS_OP_SEND});
}

class LongMessages : public testing::TestWithParam<uint16_t> {};

TEST_P(LongMessages, ArriveWhicheverWayIsTaken) {
    TestPair pair(GetParam(), Reach::cross_copy, 3u << 20);
    uint32_t seed = 0, fetched = 0, in_ring = 0, timed = 0;
    uint64_t told = 0;
    for (uint32_t i = 0; i < 70; ++i) ASSERT_NO_FATAL_FAILURE(carry(pair, 4096, ++seed));  // once around
    for (const uint32_t size :
         {8191u, 8192u, 16383u, 16384u, 30000u, 65536u, 100001u, 262144u, 300000u, 1048576u, 2097152u, 2500000u}) {
        SCOPED_TRACE(size);
        for (uint32_t i = 0; i < 14; ++i) {
            const uint32_t lines = pair.a.endpoint().tx.next;
            ASSERT_NO_FATAL_FAILURE(carry(pair, size, ++seed));
            const bool one_line = size > kOnePiece && pair.a.endpoint().tx.next == lines + 1;
            ++(one_line ? fetched : in_ring);
            timed += pair.b.endpoint().rx.own->probes[kProbeMethod].load() != told;
            told = pair.b.endpoint().rx.own->probes[kProbeMethod].load();
        }
    }
    EXPECT_GE(in_ring, 8u * 6);
    // Six classes, the shortest of which is never fetched. Two late ones end a method's part, and a receiver that is
    // late with all is given none to fetch: where the ring does not hold a message, this one is.
    EXPECT_GE(timed, 4u * 6) << "the receiver tells how long they took";
    EXPECT_LE(timed, 8u + 12u * 5);
    EXPECT_LE(fetched, 14u * 9);
    EXPECT_TRUE(pair.a.errors().empty());
}

TEST_P(LongMessages, GoThroughTheRingWhenTheReceiverLeavesThem) {
    constexpr uint32_t kSize = 64 * kK;
    TestPair pair(GetParam(), Reach::cross_copy);
    for (uint32_t i = 0; i < 70; ++i) ASSERT_NO_FATAL_FAILURE(carry(pair, 4096, i));
    MethodTuner& methods = pair.a.endpoint().tx.learnt.methods;
    OwnTuner learnt(kAllLearnt);
    ASSERT_EQ(learn(learnt, Machine{110, 150, 35}, kSize), Method::pull);
    methods = learnt;
    for (uint32_t i = 0; i < 4; ++i) pair.b.receive(pair.b.data() + i * kSize, kSize);
    // The other end calls nothing, and its helper thread has to wait for a processor.
    fill(pair.a.data(), kSize, 1);
    {
        const TakesNothing b(pair.b);
        pair.a.send(pair.a.data(), kSize);
        EXPECT_TRUE(eventually([&] {
            EXPECT_EQ(pair.a.send_done(), nullptr);
            MethodTuner as_they_are = methods;
            uint32_t last = 0;
            return as_they_are.next(kSize, true, true, &last).method != Method::pull;
        })) << "the sender has looked and found nothing";
    }
    ASSERT_NE(pair.a.wait_send(), nullptr) << "its helper thread fetches it";
    for (uint32_t i = 1; i < 4; ++i) {
        const uint32_t lines = pair.a.endpoint().tx.next;
        fill(pair.a.data() + i * kSize, kSize, 1 + i);
        pair.a.send(pair.a.data() + i * kSize, kSize);
        EXPECT_GT(pair.a.endpoint().tx.next, lines + 1);
        if (GetParam() != VIP_SERVICE_RELIABLE_RECEPTION) {
            EXPECT_NE(pair.a.send_done(), nullptr) << "complete when it is on its method";
        }
    }
    for (uint32_t i = 0; i < 4; ++i) {
        ASSERT_NE(pair.b.wait_recv(), nullptr);
        EXPECT_TRUE(filled(pair.b.data() + i * kSize, kSize, 1 + i));
    }
}

INSTANTIATE_TEST_SUITE_P(Paramnet, LongMessages, testing::ValuesIn(kLevels));

TEST(MethodTunerTest, ObeyTheSettings) {
    // What is set counts, whatever is faster.
    for (const auto& [value, lines] : {std::pair("65536", 1u), std::pair("0", 4u)}) {
        TestPair pair(VIP_SERVICE_RELIABLE_DELIVERY, Reach::cross_copy, 1 << 20,
                      {{"pull_from", value}, {"stream_from", "0"}});
        for (uint32_t i = 0; i < 40; ++i) {
            const uint32_t before = pair.a.endpoint().tx.next;
            ASSERT_NO_FATAL_FAILURE(carry(pair, 65536, i));
            EXPECT_EQ(pair.a.endpoint().tx.next, before + lines);
        }
    }
}

}  // namespace
}  // namespace viaduct::paramnet::test
