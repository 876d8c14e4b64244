// SPDX-License-Identifier: BSD-2-Clause
// Slots as a model: two ends that write packets into each other's slots and take them out again, random
// schedules, news that are read late. No packet may be written over one that nobody has taken, none may get
// lost, and whoever waits for a slot must get one. And which way long messages take.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "mpi-adi/protocol/via/slots.hpp"
#include "mpi-adi/protocol/via/ways.hpp"

namespace viaduct::via {
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
int run(Ways& ways, size_t length, int messages, uint64_t by_remote, uint64_t by_slots) {
    int slots = 0;
    for (int i = 0; i < messages; ++i) {
        const Ways::Choice c = ways.choose(length);
        // Some find cold caches, and a receiver that does not look.
        const uint64_t late = i < 3 ? 1'000'000 : 0;
        if (c.counts) ways.tell(length, c.way, (c.way == Ways::slots ? by_slots : by_remote) + late);
        if (i >= messages - 1000) slots += c.way == Ways::slots ? 1 : 0;
    }
    return slots;
}

TEST(Ways, AreLearntForEachLength) {
    Ways ways;
    EXPECT_EQ(run(ways, 16 << 10, 2000, 3000, 700), 1000);
    EXPECT_EQ(run(ways, 1 << 20, 2000, 25'000, 40'000), 0);
    EXPECT_EQ(run(ways, 16 << 10, 1000, 3000, 700), 1000);
    EXPECT_EQ(run(ways, (2 << 20) - 1, 1000, 3000, 700), 0);  // it believes what it knows of 1 MiB
    EXPECT_EQ(run(ways, 1, 2000, 3000, 700), 1000);
    EXPECT_EQ(run(ways, SIZE_MAX, 2000, 3000, 700), 1000);
}

TEST(Ways, AreTriedAnew) {
    Ways ways;
    EXPECT_EQ(run(ways, 65536, 2000, 3000, 700), 1000);
    EXPECT_EQ(run(ways, 65536, Ways::kLongestPause + 1000, 700, 3000), 0);
}

// What was measured while slots were new is soon forgotten.
TEST(Ways, AreTriedAgainSoonTheFirstTime) {
    constexpr int kTrial = Ways::kTrials[Ways::remote] + Ways::kTrials[Ways::slots];
    Ways ways;
    run(ways, 16384, kTrial, 3000, 40'000);
    EXPECT_EQ(run(ways, 16384, Ways::kFirstPause + kTrial + 400, 3000, 700),
              400 + static_cast<int>(Ways::kTrials[Ways::slots]));
}

// Of a group only the last ones count: the first meet new slots, or end with the last of the other group.
TEST(Ways, AreNotLearntFromTheFirstOfAGroup) {
    Ways ways;
    unsigned of[2] = {}, counted[2] = {};
    for (unsigned i = 0; i < Ways::kTrials[Ways::remote] + Ways::kTrials[Ways::slots]; ++i) {
        const Ways::Choice c = ways.choose(16384);
        const unsigned at = of[c.way]++;
        EXPECT_TRUE(c.timed);
        EXPECT_EQ(c.counts, at >= Ways::kTrials[c.way] - Ways::kCounted);
        EXPECT_TRUE(c.way == Ways::slots || of[Ways::slots] == 0);
        counted[c.way] += c.counts ? 1 : 0;
    }
    EXPECT_EQ(counted[Ways::remote], Ways::kCounted);
    EXPECT_EQ(counted[Ways::slots], Ways::kCounted);
}

}  // namespace
}  // namespace viaduct::via
