// SPDX-License-Identifier: BSD-2-Clause
// Slots as a model: two ends that write packets into each other's slots and take them out again, random
// schedules, news that are read late. No packet may be written over one that nobody has taken, none may get
// lost, and whoever waits for a slot must get one. And which way long messages take.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "mpi-adi/transport/via/eager_ring.hpp"
#include "mpi-adi/transport/protocol/transfer_tuner.hpp"

namespace viaduct::via {

using protocol::TransferTuner;
namespace {

struct Slot {
    uint32_t position = 0;  // of the packet in it
    bool full = false;
    uint32_t taken[kSlotKinds] = {};
};

struct End {
    SlotCounts counts[kSlotKinds] = {SlotCounts(kShort), SlotCounts(kLong)};
    std::vector<Slot> lent[kSlotKinds] = {std::vector<Slot>(kSlotCount[kShort]),
                                          std::vector<Slot>(kSlotCount[kLong])};
    uint32_t news[kSlotKinds] = {};  // written by the other end
    bool overwritten = false;
    uint64_t had = 0, told = 0;

    bool send(End& to, SlotKind kind) {
        SlotCounts& mine = counts[kind];
        if (!mine.room()) {
            for (unsigned each = 0; each < kSlotKinds; ++each) EXPECT_TRUE(counts[each].heard(news[each]));
            if (!mine.room()) return false;
        }
        Slot& slot = to.lent[kind][mine.next() % kSlotCount[kind]];
        to.overwritten = to.overwritten || slot.full;
        slot.position = mine.next() + 1;
        slot.full = true;
        mine.sent();
        for (unsigned each = 0; each < kSlotKinds; ++each) slot.taken[each] = counts[each].tell();
        return true;
    }

    bool take(End& other, SlotKind kind) {
        SlotCounts& mine = counts[kind];
        Slot& slot = lent[kind][mine.awaited() % kSlotCount[kind]];
        if (slot.position != mine.awaited() + 1) return false;
        for (unsigned each = 0; each < kSlotKinds; ++each) EXPECT_TRUE(counts[each].heard(slot.taken[each]));
        slot.full = false;
        mine.took();
        ++had;
        if (counts[kShort].much_untold() || counts[kLong].much_untold()) {
            for (unsigned each = 0; each < kSlotKinds; ++each) other.news[each] = counts[each].tell();
            ++told;
        }
        return true;
    }
};

TEST(Slots, AreWrittenOnlyWhenTheyAreFreeAndAlwaysBecomeFree) {
    for (unsigned seed = 1; seed <= 20; ++seed) {
        std::mt19937 dice(seed);
        End a, b;
        uint64_t sent = 0;
        for (int step = 0; step < 100'000; ++step) {
            End& self = dice() % 3 == 0 ? a : b;
            End& other = &self == &a ? b : a;
            const SlotKind kind = dice() % 2 == 0 ? kShort : kLong;
            // One that does not look for long, and one that never sends.
            const bool looks = &self != &a || step % 5000 < 2500;
            if (dice() % 2 == 0) {
                if (seed % 2 == 0 || &self == &b) sent += self.send(other, kind) ? 1 : 0;
            } else if (looks) {
                self.take(other, kind);
            }
            ASSERT_FALSE(a.overwritten || b.overwritten) << "step " << step;
        }
        for (int i = 0; i < 200; ++i) {
            for (const SlotKind kind : {kShort, kLong}) {
                a.take(b, kind);
                b.take(a, kind);
            }
        }
        EXPECT_EQ(a.had + b.had, sent);
        EXPECT_TRUE(a.send(b, kShort) && a.send(b, kLong) && b.send(a, kShort) && b.send(a, kLong));
    }
}

// Each news is a remote write: a stream in one direction costs one for a quarter of the slots, a dialogue
// none.
TEST(Slots, AreToldSeldom) {
    End a, b;
    for (int i = 0; i < 1000; ++i) {
        ASSERT_TRUE(a.send(b, kShort));
        ASSERT_TRUE(b.take(a, kShort));
    }
    EXPECT_EQ(b.told, 1000 / (kSlotCount[kShort] / 4));
    b.told = 0;
    for (int i = 0; i < 1000; ++i) {
        ASSERT_TRUE(b.send(a, kShort));
        ASSERT_TRUE(a.take(b, kShort));
        ASSERT_TRUE(a.send(b, kShort));
        ASSERT_TRUE(b.take(a, kShort));
    }
    EXPECT_EQ(a.told + b.told, 0u);
}

TEST(Slots, CountsThatCannotBeAreRefused) {
    SlotCounts counts(kLong);
    EXPECT_FALSE(counts.heard(1));  // nothing was sent
    for (uint32_t i = 0; i < kSlotCount[kLong]; ++i) counts.sent();
    EXPECT_FALSE(counts.room());
    EXPECT_FALSE(counts.heard(kSlotCount[kLong] + 1));
    EXPECT_TRUE(counts.heard(3));
    EXPECT_TRUE(counts.heard(2));  // older news say nothing
    EXPECT_EQ(counts.free(), 3u);
    EXPECT_TRUE(counts.room());
}

TEST(Slots, LieInTheAreaOneBesideTheOther) {
    size_t end = sizeof(SlotNews);
    for (const SlotKind kind : {kShort, kLong}) {
        for (uint32_t i = 0; i < kSlotCount[kind]; ++i) {
            EXPECT_GE(slot_end(kind, i) - kSlotBytes[kind], end);
            EXPECT_EQ(slot_end(kind, i) % kSlotLine, 0u);
            end = slot_end(kind, i);
        }
    }
    EXPECT_LE(end, kSlotAreaBytes);
    EXPECT_EQ(slot_bytes_for(sizeof(EagerInSlot) + 16), 64u);
    EXPECT_EQ(slot_bytes_for(sizeof(EagerInSlot) + 17), 128u);
    EXPECT_EQ(slot_kind_for(512 - sizeof(SlotEnd)), kShort);
    EXPECT_EQ(slot_kind_for(512 - sizeof(SlotEnd) + 1), kLong);
}

// So many messages, which take this long either way; how many of the last thousand went through slots.
int run(TransferTuner& ways, size_t length, int messages, uint64_t by_remote, uint64_t by_slots) {
    int slots = 0;
    for (int i = 0; i < messages; ++i) {
        const TransferTuner::Choice c = ways.choose(length);
        // Some find cold caches, and a receiver that does not look.
        const uint64_t late = i < 3 ? 1'000'000 : 0;
        if (c.counts) ways.tell(length, c, (c.route == TransferTuner::frames ? by_slots : by_remote) + late);
        if (i >= messages - 1000) slots += c.route == TransferTuner::frames ? 1 : 0;
    }
    return slots;
}

constexpr int kTrial = TransferTuner::kTrials[TransferTuner::remote] + TransferTuner::kTrials[TransferTuner::frames];

// One trial in which each counted message of either way takes so long.
void try_both(TransferTuner& ways, size_t length, const std::vector<uint64_t>& by_remote,
              const std::vector<uint64_t>& by_slots) {
    size_t at[2] = {};
    for (int i = 0; i < kTrial; ++i) {
        const TransferTuner::Choice c = ways.choose(length);
        ASSERT_TRUE(c.timed);
        if (c.counts) ways.tell(length, c, (c.route == TransferTuner::frames ? by_slots : by_remote).at(at[c.route]++));
    }
}

// How many messages go without one that is tried.
int until_the_next_trial(TransferTuner& ways, size_t length, TransferTuner::Route way) {
    int n = 0;
    for (;; ++n) {
        TransferTuner ahead = ways;
        const TransferTuner::Choice c = ahead.choose(length);
        if (c.timed) return n;
        EXPECT_EQ(c.route, way);
        ways = ahead;
    }
}

TEST(TransferTuner, AreLearntForEachLength) {
    TransferTuner ways;
    EXPECT_EQ(run(ways, 16 << 10, 2000, 3000, 700), 1000);
    EXPECT_EQ(run(ways, 1 << 20, 2000, 25'000, 40'000), 0);
    EXPECT_EQ(run(ways, 16 << 10, 1000, 3000, 700), 1000);
    EXPECT_EQ(run(ways, (2 << 20) - 1, 1000, 3000, 700), 0);  // it believes what it knows of 1 MiB
    EXPECT_EQ(run(ways, 1, 2000, 3000, 700), 1000);
    EXPECT_EQ(run(ways, SIZE_MAX, 2000, 3000, 700), 1000);
}

TEST(TransferTuner, AreTriedAnew) {
    TransferTuner ways;
    EXPECT_EQ(run(ways, 65536, 2000, 3000, 700), 1000);
    EXPECT_EQ(run(ways, 65536, TransferTuner::kLongestPause + 1000, 700, 3000), 0);
}

// What was measured while slots were new is soon forgotten, and what two trials agree on is believed for long.
TEST(TransferTuner, AreTriedAgainSoonUntilATrialConfirmsTheOneBefore) {
    TransferTuner ways;
    try_both(ways, 16384, {3000, 3000, 3000}, {40'000, 700, 700});
    EXPECT_EQ(until_the_next_trial(ways, 16384, TransferTuner::remote), static_cast<int>(TransferTuner::kFirstPause));
    for (const unsigned pause : {TransferTuner::kFirstPause, 8 * TransferTuner::kFirstPause,
                                 TransferTuner::kLongestPause, TransferTuner::kLongestPause}) {
        try_both(ways, 16384, {3000, 3000, 3000}, {700, 700, 700});
        EXPECT_EQ(until_the_next_trial(ways, 16384, TransferTuner::frames), static_cast<int>(pause));
    }
    try_both(ways, 16384, {600, 600, 600}, {700, 700, 700});
    EXPECT_EQ(until_the_next_trial(ways, 16384, TransferTuner::remote), static_cast<int>(TransferTuner::kFirstPause));
}

// Of messages that overlap two may end at once, and the second one then seems to have taken no time.
TEST(TransferTuner, AreComparedByWhatAllOfATrialTook) {
    TransferTuner ways;
    try_both(ways, 1 << 20, {100, 100, 180'000}, {18'000, 18'000, 18'000});
    until_the_next_trial(ways, 1 << 20, TransferTuner::frames);
}

// Messages that wait behind many others may end late, and some never do: their trial is waited for, but not for ever.
TEST(TransferTuner, AreNotLearntFromATrialThatIsOver) {
    TransferTuner ways;
    std::vector<TransferTuner::Choice> late;
    for (int i = 0; i < kTrial; ++i) late.push_back(ways.choose(16384));
    EXPECT_EQ(until_the_next_trial(ways, 16384, TransferTuner::frames), static_cast<int>(TransferTuner::kLongestPause));
    for (const TransferTuner::Choice& c : late) {
        if (c.counts) ways.tell(16384, c, c.route == TransferTuner::frames ? 9000 : 10);
    }
    try_both(ways, 16384, {3000, 3000, 3000}, {700, 700, 700});
    until_the_next_trial(ways, 16384, TransferTuner::frames);
}

// Of a group only the last ones count: the first meet new slots, or end with the last of the other group.
TEST(TransferTuner, AreNotLearntFromTheFirstOfAGroup) {
    TransferTuner ways;
    unsigned of[2] = {}, counted[2] = {};
    for (int i = 0; i < kTrial; ++i) {
        const TransferTuner::Choice c = ways.choose(16384);
        const unsigned at = of[c.route]++;
        EXPECT_TRUE(c.timed);
        EXPECT_EQ(c.counts, at >= TransferTuner::kTrials[c.route] - TransferTuner::kCounted);
        EXPECT_TRUE(c.route == TransferTuner::frames || of[TransferTuner::frames] == 0);
        counted[c.route] += c.counts ? 1 : 0;
    }
    EXPECT_EQ(counted[TransferTuner::remote], TransferTuner::kCounted);
    EXPECT_EQ(counted[TransferTuner::frames], TransferTuner::kCounted);
}

}  // namespace
}  // namespace viaduct::via
