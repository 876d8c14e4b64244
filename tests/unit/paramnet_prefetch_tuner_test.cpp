// SPDX-License-Identifier: BSD-2-Clause
// Whether blocks are fetched ahead, by given times; and that messages of one piece arrive whole and in one
// line.
#include "providers/paramnet/prefetch_tuner.hpp"

#include "paramnet_fixture.hpp"
#include "providers/paramnet/rendezvous.hpp"

namespace viaduct::paramnet::test {
namespace {

constexpr uint32_t kBlockBytes = 4096;

// One that numbers its trials itself.
struct OwnPrefetchTuner : PrefetchTuner {
    using PrefetchTuner::PrefetchTuner;
    uint32_t last = 0;
    uint32_t next(uint32_t bytes, bool fetched, bool steady) {
        return PrefetchTuner::next(bytes, fetched, steady, &last);
    }
};

// Sends `count` messages, each answered before the next, which take so many ns with and without blocks that
// were fetched. How many of them were timed.
uint32_t learn(OwnPrefetchTuner& tuner, uint32_t with, uint32_t without, uint32_t count = 100) {
    uint32_t timed = 0;
    for (uint32_t i = 0; i < count; ++i) {
        const bool fetched = tuner.fetches(kBlockBytes);
        const uint32_t trial = tuner.next(kBlockBytes, fetched, true);
        if (trial == 0) continue;
        ++timed;
        tuner.answered(trial, fetched ? with : without);
    }
    return timed;
}

TEST(PrefetchTunerTest, IsDoneWhereItHasProvedFaster) {
    OwnPrefetchTuner gains, loses;
    EXPECT_EQ(learn(gains, 200, 300), 8u);
    EXPECT_TRUE(gains.fetches(kBlockBytes));
    EXPECT_EQ(learn(loses, 300, 200), 8u);
    EXPECT_FALSE(loses.fetches(kBlockBytes));
    EXPECT_TRUE(loses.fetches(PrefetchTuner::kLearntFrom - 1)) << "short ones always gain";
}

TEST(PrefetchTunerTest, IsTriedAgainNowAndThen) {
    OwnPrefetchTuner tuner;
    learn(tuner, 300, 200);
    ASSERT_FALSE(tuner.fetches(kBlockBytes));
    EXPECT_EQ(learn(tuner, 200, 300, 10000), 16u);
    EXPECT_TRUE(tuner.fetches(kBlockBytes)) << "the processors were moved";
}

TEST(PrefetchTunerTest, StaysAsItIsForALittleAndForTimesThatTellNothing) {
    OwnPrefetchTuner tuner;
    learn(tuner, 200, 195);
    EXPECT_TRUE(tuner.fetches(kBlockBytes));
    OwnPrefetchTuner late;
    learn(late, 1'000'000, 900'000);
    EXPECT_TRUE(late.fetches(kBlockBytes)) << "the receiver was not looking";
}

TEST(PrefetchTunerTest, CountsTheSlowerOfTheTwoEnds) {
    OwnPrefetchTuner tuner;
    for (uint32_t i = 0; i < 100; ++i) {
        const bool fetched = tuner.fetches(kBlockBytes);
        const uint32_t trial = tuner.next(kBlockBytes, fetched, true);
        if (trial == 0) continue;
        tuner.trial().sent(trial, fetched ? 250 : 90);
        tuner.answered(trial, 80);
    }
    EXPECT_FALSE(tuner.fetches(kBlockBytes));
}

TEST(PrefetchTunerTest, TimesOnlyMessagesOfTheKindItTries) {
    OwnPrefetchTuner tuner;
    for (uint32_t i = 0; i < 10; ++i) {
        EXPECT_EQ(tuner.next(kBlockBytes, false, true), 0u) << "their blocks have not been fetched";
        EXPECT_EQ(tuner.next(kBlockBytes, true, false), 0u) << "pages of the ring are missing";
    }
    const uint32_t trial = tuner.next(kBlockBytes, true, true);
    ASSERT_NE(trial, 0u);
    EXPECT_EQ(tuner.next(kBlockBytes, true, true), 0u) << "one at a time";
    tuner.answered(trial - 1, 1);
    EXPECT_TRUE(tuner.trial().open()) << "the answer to another one";
    uint32_t again = 0;
    for (uint32_t i = 0; again == 0 && i < 10000; ++i) again = tuner.next(kBlockBytes, true, true);
    EXPECT_NE(again, 0u) << "a peer that does not answer";
}

TEST(PrefetchTunerTest, TriesNothingWhereTrialsAreOff) {
    OwnPrefetchTuner off(false);
    EXPECT_EQ(learn(off, 300, 200, 20000), 0u);
    EXPECT_TRUE(off.fetches(kBlockBytes));
}

class OnePiece : public testing::TestWithParam<uint16_t> {};

// Receives of that length, known to the sender before it sends: one that has to x
void post(TestVi& vi, uint32_t bytes, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) vi.receive(vi.data(), bytes);
}

// How many lines the message took.
uint32_t send(TestVi& from, TestVi& to, uint32_t bytes, uint32_t seed) {
    const uint32_t before = from.endpoint().tx.next;
    fill(from.data(), bytes, seed);
    from.send(from.data(), bytes);
    const VIP_DESCRIPTOR* d = to.wait_recv();
    EXPECT_TRUE(d != nullptr && d->CS.Length == bytes && filled(to.data(), bytes, seed)) << bytes;
    EXPECT_NE(from.wait_send(), nullptr) << bytes;
    return from.endpoint().tx.next - before;
}

TEST_P(OnePiece, TakesOneLineWherePlainStoresWriteIt) {
    TestPair pair(GetParam(), Reach::same_process, 1 << 20, {{"stream_from", "1000000"}, {"pull_from", "0"}});
    post(pair.b, 20000, 20);
    uint32_t seed = 0;
    for (const uint32_t bytes : {2111u, 2112u, 4096u, 4097u, 8191u, 8192u, 12345u, 16384u})
        EXPECT_EQ(send(pair.a, pair.b, bytes, ++seed), 1u) << bytes;
    EXPECT_GT(send(pair.a, pair.b, 16385, ++seed), 1u);
}

TEST_P(OnePiece, ArrivesWholeWhileTheConnectionLearns) {
    TestPair pair(GetParam());
    post(pair.b, kOnePiece, 1000);
    uint32_t seed = 0;
    for (uint32_t i = 0; i < 240; ++i)
        for (const uint32_t bytes : {4096u, 5000u, 8192u, 16384u}) send(pair.a, pair.b, bytes, ++seed);
    EXPECT_EQ(send(pair.a, pair.b, 5000, ++seed), 1u);
}

// Where messages are answered one by one, each that is timed has its answer, so that every wait ends.
TEST_P(OnePiece, IsTimedWhereThatIsAskedFor) {
    TestPair pair(GetParam());
    post(pair.a, 8, 1000);
    post(pair.b, kBlockBytes, 1000);
    uint32_t answered = 0;
    for (uint32_t i = 0; i < 1000; ++i) {
        send(pair.a, pair.b, kBlockBytes, i);
        send(pair.b, pair.a, 8, i);
        Tx& tx = pair.a.endpoint().tx;
        if (!tx.learnt.answered.trial().open()) continue;
        const std::lock_guard lock(pair.a.core.send.lock);
        read_probe_result(pair.a.endpoint());
        EXPECT_FALSE(tx.learnt.answered.trial().open()) << i;
        ++answered;
    }
    EXPECT_GE(answered, 4u);
}

INSTANTIATE_TEST_SUITE_P(Paramnet, OnePiece, testing::ValuesIn(kLevels));

}  // namespace
}  // namespace viaduct::paramnet::test
