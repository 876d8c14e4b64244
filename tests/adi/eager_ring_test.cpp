// SPDX-License-Identifier: BSD-2-Clause
// A model of eager rings: two ends that write packets into each other's slots and take them out again, in random
// schedules, with reports that are read late. No packet may overwrite one that is not taken, none may get lost, and an
// end that waits for a slot must get one. And the routes of long messages.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "mpi-adi/transport/protocol/transfer_tuner.hpp"
#include "mpi-adi/transport/via/ring_layout.hpp"

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
    std::vector<Slot> local[kSlotKinds] = {std::vector<Slot>(kSlotCount[kShort]), std::vector<Slot>(kSlotCount[kLong])};
    uint32_t status[kSlotKinds] = {};  // written by the other end
    bool overwritten = false;
    uint64_t received = 0, reports = 0;

    bool send(End& to, SlotKind kind) {
        SlotCounts& mine = counts[kind];
        if (!mine.room()) {
            for (unsigned each = 0; each < kSlotKinds; ++each) EXPECT_TRUE(counts[each].update(status[each]));
            if (!mine.room()) return false;
        }
        Slot& slot = to.local[kind][mine.next() % kSlotCount[kind]];
        to.overwritten = to.overwritten || slot.full;
        slot.position = mine.next() + 1;
        slot.full = true;
        mine.sent();
        for (unsigned each = 0; each < kSlotKinds; ++each) slot.taken[each] = counts[each].report();
        return true;
    }

    bool take(End& other, SlotKind kind) {
        SlotCounts& mine = counts[kind];
        Slot& slot = local[kind][mine.taken() % kSlotCount[kind]];
        if (slot.position != mine.taken() + 1) return false;
        for (unsigned each = 0; each < kSlotKinds; ++each) EXPECT_TRUE(counts[each].update(slot.taken[each]));
        slot.full = false;
        mine.take();
        ++received;
        if (counts[kShort].report_due() || counts[kLong].report_due()) {
            for (unsigned each = 0; each < kSlotKinds; ++each) other.status[each] = counts[each].report();
            ++reports;
        }
        return true;
    }
};

TEST(EagerRing, SlotsAreWrittenOnlyWhenFreeAndAlwaysBecomeFree) {
    for (unsigned seed = 1; seed <= 20; ++seed) {
        std::mt19937 dice(seed);
        End a, b;
        uint64_t sent = 0;
        for (int step = 0; step < 100'000; ++step) {
            End& self = dice() % 3 == 0 ? a : b;
            End& other = &self == &a ? b : a;
            const SlotKind kind = dice() % 2 == 0 ? kShort : kLong;
            // One end that does not poll for long, and one that never sends.
            const bool polls = &self != &a || step % 5000 < 2500;
            if (dice() % 2 == 0) {
                if (seed % 2 == 0 || &self == &b) sent += self.send(other, kind) ? 1 : 0;
            } else if (polls) {
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
        EXPECT_EQ(a.received + b.received, sent);
        EXPECT_TRUE(a.send(b, kShort) && a.send(b, kLong) && b.send(a, kShort) && b.send(a, kLong));
    }
}

// Each report is a remote write: a stream in one direction costs one for a quarter of the slots, a dialogue none.
TEST(EagerRing, FreeSlotsAreReportedSeldom) {
    End a, b;
    for (int i = 0; i < 1000; ++i) {
        ASSERT_TRUE(a.send(b, kShort));
        ASSERT_TRUE(b.take(a, kShort));
    }
    EXPECT_EQ(b.reports, 1000 / (kSlotCount[kShort] / 4));
    b.reports = 0;
    for (int i = 0; i < 1000; ++i) {
        ASSERT_TRUE(b.send(a, kShort));
        ASSERT_TRUE(a.take(b, kShort));
        ASSERT_TRUE(a.send(b, kShort));
        ASSERT_TRUE(b.take(a, kShort));
    }
    EXPECT_EQ(a.reports + b.reports, 0u);
}

TEST(EagerRing, ImpossibleCountsAreRefused) {
    SlotCounts counts(kLong);
    EXPECT_FALSE(counts.update(1));  // nothing was sent
    for (uint32_t i = 0; i < kSlotCount[kLong]; ++i) counts.sent();
    EXPECT_FALSE(counts.room());
    EXPECT_FALSE(counts.update(kSlotCount[kLong] + 1));
    EXPECT_TRUE(counts.update(3));
    EXPECT_TRUE(counts.update(2));  // an older report changes nothing
    EXPECT_EQ(counts.free(), 3u);
    EXPECT_TRUE(counts.room());
}

TEST(EagerRing, SlotsLieInTheAreaOneBesideTheOther) {
    size_t end = sizeof(RingStatus);
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

// So many messages, which take this long by either route; how many of the last thousand went in frames.
int run(TransferTuner& tuner, size_t length, int messages, uint64_t by_remote, uint64_t by_frames) {
    int in_frames = 0;
    for (int i = 0; i < messages; ++i) {
        const TransferTuner::Choice c = tuner.choose(length);
        // Some find cold caches, and a receiver that does not look.
        const uint64_t late = i < 3 ? 1'000'000 : 0;
        if (c.counts) tuner.tell(length, c, (c.route == TransferTuner::frames ? by_frames : by_remote) + late);
        if (i >= messages - 1000) in_frames += c.route == TransferTuner::frames ? 1 : 0;
    }
    return in_frames;
}

constexpr int kTrial = TransferTuner::kTrials[TransferTuner::remote] + TransferTuner::kTrials[TransferTuner::frames];

// One trial in which the counted messages of each route take so long.
void try_both(TransferTuner& tuner, size_t length, const std::vector<uint64_t>& by_remote,
              const std::vector<uint64_t>& by_frames) {
    size_t at[2] = {};
    for (int i = 0; i < kTrial; ++i) {
        const TransferTuner::Choice c = tuner.choose(length);
        ASSERT_TRUE(c.timed);
        if (c.counts)
            tuner.tell(length, c, (c.route == TransferTuner::frames ? by_frames : by_remote).at(at[c.route]++));
    }
}

// How many messages follow before the next trial.
int until_the_next_trial(TransferTuner& tuner, size_t length, TransferTuner::Route route) {
    int n = 0;
    for (;; ++n) {
        TransferTuner next = tuner;
        const TransferTuner::Choice c = next.choose(length);
        if (c.timed) return n;
        EXPECT_EQ(c.route, route);
        tuner = next;
    }
}

TEST(TransferTuner, LearnsForEachClassOfLengths) {
    TransferTuner tuner;
    EXPECT_EQ(run(tuner, 16 << 10, 2000, 3000, 700), 1000);
    EXPECT_EQ(run(tuner, 1 << 20, 2000, 25'000, 40'000), 0);
    EXPECT_EQ(run(tuner, 16 << 10, 1000, 3000, 700), 1000);
    EXPECT_EQ(run(tuner, (2 << 20) - 1, 1000, 3000, 700), 0);  // in the class of 1 MiB
    EXPECT_EQ(run(tuner, 1, 2000, 3000, 700), 1000);
    EXPECT_EQ(run(tuner, SIZE_MAX, 2000, 3000, 700), 1000);
}

TEST(TransferTuner, TriesAgain) {
    TransferTuner tuner;
    EXPECT_EQ(run(tuner, 65536, 2000, 3000, 700), 1000);
    EXPECT_EQ(run(tuner, 65536, TransferTuner::kLongestPause + 1000, 700, 3000), 0);
}

// A first trial is soon repeated; a result that a second trial confirms is kept for long.
TEST(TransferTuner, TriesAgainSoonUntilATrialConfirmsTheOneBefore) {
    TransferTuner tuner;
    try_both(tuner, 16384, {3000, 3000, 3000}, {40'000, 700, 700});
    EXPECT_EQ(until_the_next_trial(tuner, 16384, TransferTuner::remote), static_cast<int>(TransferTuner::kFirstPause));
    for (const unsigned pause : {TransferTuner::kFirstPause, 8 * TransferTuner::kFirstPause,
                                 TransferTuner::kLongestPause, TransferTuner::kLongestPause}) {
        try_both(tuner, 16384, {3000, 3000, 3000}, {700, 700, 700});
        EXPECT_EQ(until_the_next_trial(tuner, 16384, TransferTuner::frames), static_cast<int>(pause));
    }
    try_both(tuner, 16384, {600, 600, 600}, {700, 700, 700});
    EXPECT_EQ(until_the_next_trial(tuner, 16384, TransferTuner::remote), static_cast<int>(TransferTuner::kFirstPause));
}

// Of messages that overlap two may end at once, and the second one then seems to have taken no time.
TEST(TransferTuner, ComparesTheSumOfATrial) {
    TransferTuner tuner;
    try_both(tuner, 1 << 20, {100, 100, 180'000}, {18'000, 18'000, 18'000});
    until_the_next_trial(tuner, 1 << 20, TransferTuner::frames);
}

// Messages that wait behind many others may end late, and some never do: their trial is waited for, but not for ever.
TEST(TransferTuner, IgnoresTimesOfAnEarlierTrial) {
    TransferTuner tuner;
    std::vector<TransferTuner::Choice> late;
    for (int i = 0; i < kTrial; ++i) late.push_back(tuner.choose(16384));
    EXPECT_EQ(until_the_next_trial(tuner, 16384, TransferTuner::frames),
              static_cast<int>(TransferTuner::kLongestPause));
    for (const TransferTuner::Choice& c : late) {
        if (c.counts) tuner.tell(16384, c, c.route == TransferTuner::frames ? 9000 : 10);
    }
    try_both(tuner, 16384, {3000, 3000, 3000}, {700, 700, 700});
    until_the_next_trial(tuner, 16384, TransferTuner::frames);
}

// Of a group only the last ones count: the first ones meet new memory, or end with the last of the other group.
TEST(TransferTuner, IgnoresTheFirstOfAGroup) {
    TransferTuner tuner;
    unsigned of[2] = {}, counted[2] = {};
    for (int i = 0; i < kTrial; ++i) {
        const TransferTuner::Choice c = tuner.choose(16384);
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
