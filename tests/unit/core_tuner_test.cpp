// SPDX-License-Identifier: BSD-2-Clause
// Which method is kept, by given times; and what trials cost the messages that they are made of.
#include "core/tuner/transfer_tuner.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <vector>

namespace viaduct::test {
namespace {

constexpr size_t kBytes = 65536;
constexpr uint32_t kLateNs = 10'000;
constexpr TunedMethod kTwo[] = {{}, {}};
constexpr TunerRules kRules{.methods = kTwo};
// As an engine has them that moves several long messages at once: two methods, tried in groups.
constexpr TunedMethod kGroups[] = {{.told = 3, .untold = 8}, {.told = 3, .untold = 1}};
constexpr TunerRules kOverlapping{
    .methods = kGroups, .statistic = Statistic::mean, .gain = 0, .first_pause = 64, .late_ns = 50'000};

using Tuner = TransferTuner<13, 24>;

// Times of the methods of a machine, ns; 0: of no interest.
using Machine = std::vector<uint64_t>;

struct Sent {
    uint32_t total = 0, tried = 0;
    std::map<uint8_t, uint32_t> tried_by;
    uint64_t ns = 0;
};

Sent send(Tuner& tuner, const Machine& machine, uint32_t count, size_t bytes = kBytes) {
    Sent sent;
    for (uint32_t i = 0; i < count; ++i) {
        const Tuner::Choice choice = tuner.choose(bytes);
        const uint64_t ns = machine[choice.method];
        if (choice.counts) tuner.tell(bytes, choice, ns);
        ++sent.total;
        sent.ns += ns;
        sent.tried += choice.timed;
        if (choice.timed) ++sent.tried_by[choice.method];
    }
    return sent;
}

TEST(TransferTuner, KeepsTheFastestWay) {
    Tuner a(kRules), b(kRules), c(kOverlapping);
    EXPECT_EQ(send(a, {9000, 7000}, 20).tried, 8u);
    EXPECT_EQ(a.kept(kBytes), 1);
    send(b, {7000, 9000}, 20);
    EXPECT_EQ(b.kept(kBytes), 0);
    EXPECT_EQ(send(c, {9000, 7000}, 20).tried, 15u);
    EXPECT_EQ(c.kept(kBytes), 1);
}

TEST(TransferTuner, ChangesForALittleNeitherThereNorBack) {
    Tuner tuner(kRules);
    send(tuner, {7000, 6800}, 20);
    EXPECT_EQ(tuner.kept(kBytes), 0);
    send(tuner, {9000, 7000}, 9000);
    ASSERT_EQ(tuner.kept(kBytes), 1);
    send(tuner, {6800, 7000}, 9000);
    EXPECT_EQ(tuner.kept(kBytes), 1);
}

TEST(TransferTuner, LearnsEachPowerOfTwoOfTheLengthByItself) {
    Tuner tuner(kRules);
    send(tuner, {9000, 7000}, 20, 100'000);
    EXPECT_EQ(tuner.kept(65536), 1);
    EXPECT_EQ(tuner.kept(131071), 1);
    EXPECT_EQ(tuner.kept(131072), 0);
    EXPECT_EQ(tuner.kept(65535), 0);
    send(tuner, {9000, 7000}, 20, 1);
    EXPECT_EQ(tuner.kept(0), 1);
    EXPECT_EQ(tuner.kept(16383), 1) << "8 KiB and less are one class";
    send(tuner, {90'000'000, 70'000'000}, 20, size_t{1} << 30);
    EXPECT_EQ(tuner.kept(size_t{1} << 24), 1) << "16 MiB and more are one";
}

TEST(TransferTuner, TriesNothingWhereItIsOff) {
    Tuner tuner(kRules, false);
    const Sent sent = send(tuner, {9000, 1000}, 100'000);
    EXPECT_EQ(sent.tried, 0u);
    EXPECT_EQ(tuner.kept(kBytes), 0);
    EXPECT_FALSE(tuner.stays(kBytes, 0)) << "choose() says so";
}

TEST(TransferTuner, TakesWhatIsPossible) {
    static constexpr TunedMethod kThree[] = {{}, {}, {}};
    static constexpr TunerRules kRulesOfThree{.methods = kThree};
    Tuner tuner(kRulesOfThree);
    send(tuner, {9000, 5000, 7000}, 30);
    EXPECT_EQ(tuner.kept(kBytes), 1);
    EXPECT_EQ(tuner.kept(kBytes, 0b101), 2) << "the second best";
    EXPECT_EQ(tuner.choose(kBytes, 0b001).method, 0);
    EXPECT_EQ(tuner.choose(kBytes, 0b101, false).method, 2);
}

TEST(TransferTuner, StaysWithoutAnotherLookUntilARoundIsDue) {
    Tuner tuner(kRules);
    EXPECT_FALSE(tuner.stays(kBytes, 0)) << "not known yet";
    send(tuner, {7000, 9000}, 10);
    EXPECT_FALSE(tuner.stays(kBytes, 1));
    uint32_t stays = 0;
    while (tuner.stays(kBytes, 0)) ++stays;
    EXPECT_GT(stays, 4000u);
    EXPECT_GT(send(tuner, {7000, 9000}, 20).tried, 0u);
}

TEST(TransferTuner, TriesAnewAndSeldomWhileThatChangesNothing) {
    Tuner tuner(kOverlapping);
    const Sent early = send(tuner, {7000, 7100}, 1000);
    EXPECT_GE(early.tried, 30u);
    send(tuner, {7000, 7100}, 10'000);
    EXPECT_EQ(tuner.of_length(kBytes).pause(), kOverlapping.longest_pause);
    EXPECT_LE(send(tuner, {7000, 7100}, 8192).tried, 45u);
    send(tuner, {9000, 7000}, 10'000);
    EXPECT_EQ(tuner.kept(kBytes), 1) << "the processors were moved";
}

// Messages that overlap: each is told of when eight more have been chosen.
TEST(TransferTuner, GroupsTransfersThatOverlapByTheirWay) {
    Tuner tuner(kOverlapping);
    struct Out {
        Tuner::Choice choice;
    };
    std::deque<Out> out;
    uint32_t changes = 0, tried = 0;
    uint8_t last = 0;
    for (uint32_t i = 0; i < 60; ++i) {
        const Tuner::Choice choice = tuner.choose(kBytes);
        if (choice.timed) {
            changes += choice.method != last;
            last = choice.method;
            ++tried;
        }
        out.push_back({choice});
        if (out.size() < 8) continue;
        if (out.front().choice.counts)
            tuner.tell(kBytes, out.front().choice, out.front().choice.method == 0 ? 9000 : 7000);
        out.pop_front();
    }
    EXPECT_EQ(tried, 15u);
    EXPECT_EQ(changes, 1u);
    EXPECT_EQ(tuner.kept(kBytes), 1);
}

TEST(TransferTuner, ForgetsWhatIsToldOfAnEarlierRound) {
    Tuner tuner(kRules);
    const Tuner::Choice first = tuner.choose(kBytes);
    ASSERT_TRUE(first.counts);
    tuner.tell(kBytes, first, TunerClass::kNeverTold);
    send(tuner, {7000, 9000}, 5000);
    ASSERT_EQ(tuner.kept(kBytes), 0);
    for (uint32_t i = 0; i < 100; ++i) tuner.tell(kBytes, first, 1'000'000);
    EXPECT_EQ(send(tuner, {7000, 9000}, 5000).tried, 8u);
    EXPECT_EQ(tuner.kept(kBytes), 0);
}

TEST(TransferTuner, GoesOnWhenNothingIsEverTold) {
    Tuner tuner(kRules);
    uint32_t tried = 0;
    for (uint32_t i = 0; i < 100'000; ++i) tried += tuner.choose(kBytes).timed;
    EXPECT_GE(tried, 8u);
    EXPECT_LE(tried, 8u * 14);
    EXPECT_EQ(tuner.kept(kBytes), 0);
}

TEST(TransferTuner, TriesAMethodThatNeedsAPollingPeerOnlyBehindOneThatWasInTime) {
    static constexpr TunedMethod kNeeds[] = {{}, {.after_others = true}};
    static constexpr TunerRules kRulesOfNeeds{.methods = kNeeds};
    Tuner absent(kRulesOfNeeds), present(kRulesOfNeeds);
    EXPECT_EQ(send(absent, {1'000'000, 1'000'000}, 50'000).tried_by.count(1), 0u);
    EXPECT_EQ(send(present, {9000, 7000}, 100).tried_by[1], 4u);
}

// The bounds that the header promises.
TEST(TransferTuner, SendsTwoMessagesOfARoundByAWayThatIsLateAndThenSeldomAny) {
    Tuner tuner(kRules);
    const Machine machine{7000, 5'000'000};
    EXPECT_EQ(send(tuner, machine, 4096).tried_by[1], TunerClass::kMostLate);
    const uint32_t later = send(tuner, machine, 1'000'000).tried_by[1];
    EXPECT_GE(later, 2u) << "it is tried again";
    EXPECT_LE(later, 2u * (1'000'000 / 65'536)) << "two in 65,536 and more";
    EXPECT_EQ(tuner.kept(kBytes), 0);
    send(tuner, {7000, 3000}, 2'000'000);
    EXPECT_EQ(tuner.kept(kBytes), 1) << "and found when it has become the better one";
}

TEST(TransferTuner, ComesBackAtOnceToAWayThatWasLateWithAllOthers) {
    Tuner tuner(kRules);
    send(tuner, {1'000'000, 1'000'000}, 4100);  // the peer computes
    EXPECT_EQ(send(tuner, {9000, 7000}, 4110).tried_by[1], 4u);
    EXPECT_EQ(tuner.kept(kBytes), 1);
}

TEST(TransferTuner, CostsNoMoreThanOnePercentOfTheTime) {
    for (const uint64_t other : {7001u, 10'000u, 30'000u, 60'000u, 75'000u, 1'000'000u}) {
        for (const TunerRules* rules : {&kRules, &kOverlapping}) {
            Tuner tuner(*rules);
            send(tuner, {7000, other}, 200);  // what is learnt at first is not known before
            constexpr uint32_t kCount = 2'000'000;
            const Sent sent = send(tuner, {7000, other}, kCount);
            const uint64_t least = 7000ull * kCount;
            // MethodTuner that tell nothing at first (`untold`) are not counted by the tuner: as many again, at most.
            const uint64_t allowed = rules == &kRules ? least / 100 : least / 20;
            EXPECT_LE(sent.ns - least, allowed + 4 * other) << other;
        }
    }
}

TEST(TransferTuner, CallsLateWhatTakesTheBoundAndANanosecondAByte) {
    for (const auto& [ns, late] : {std::pair<uint64_t, bool>{kLateNs + kBytes, false}, {kLateNs + kBytes + 1, true}}) {
        Tuner tuner(kRules);
        EXPECT_EQ(send(tuner, {kLateNs, ns}, 100).tried_by[1], late ? 2u : 4u);
    }
}

}  // namespace
}  // namespace viaduct::test
