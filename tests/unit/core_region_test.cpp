// SPDX-License-Identifier: BSD-2-Clause
// The table of registered memory: handles, checks, and readers that race with the owner.
#include "core/memory/region_table.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

#include "tests/eventually.hpp"
#include "tests/thread_sleeps.hpp"

namespace viaduct {
namespace {

Region region(uint64_t base, uint64_t length, uint32_t ptag = 0, uint32_t flags = 0) {
    Region r;
    r.base = base;
    r.length = length;
    r.ptag = ptag;
    r.flags = flags;
    return r;
}

TEST(RegionTable, ChecksToTheByte) {
    RegionTable table;
    ASSERT_TRUE(table.valid());
    const uint32_t h = table.add(region(1000, 100));
    EXPECT_EQ(table.check(h, 1000, 100, 0), RegionCheck::ok);
    EXPECT_EQ(table.check(h, 1099, 1, 0), RegionCheck::ok);
    EXPECT_EQ(table.check(h, 1050, 0, 0), RegionCheck::ok);
    EXPECT_EQ(table.check(h, 1100, 0, 0), RegionCheck::ok) << "nothing, at the very end";
    EXPECT_EQ(table.check(h, 999, 1, 0), RegionCheck::out_of_range);
    EXPECT_EQ(table.check(h, 999, 2, 0), RegionCheck::out_of_range);
    EXPECT_EQ(table.check(h, 1099, 2, 0), RegionCheck::out_of_range);
    EXPECT_EQ(table.check(h, 1100, 1, 0), RegionCheck::out_of_range);
    EXPECT_EQ(table.check(h, 1000, 101, 0), RegionCheck::out_of_range);
    EXPECT_EQ(table.check(h, 1000, UINT64_MAX, 0), RegionCheck::out_of_range);
    EXPECT_EQ(table.check(h, UINT64_MAX, 1, 0), RegionCheck::out_of_range);
    EXPECT_EQ(table.check(h, UINT64_MAX - 10, 2000, 0), RegionCheck::out_of_range);
}

TEST(RegionCache, CoversToTheByteWhatItRemembers) {
    RegionTable table;
    RegionCache cache;
    EXPECT_FALSE(cache.covers(0, 0, 0)) << "nothing is remembered yet";
    const uint32_t h = table.add(region(1000, 100));
    EXPECT_FALSE(cache.covers(h, 1000, 100));
    ASSERT_EQ(table.check_and_remember(cache, h, 1050, 1, 0), RegionCheck::ok);
    EXPECT_TRUE(cache.covers(h, 1000, 100));
    EXPECT_TRUE(cache.covers(h, 1099, 1));
    EXPECT_TRUE(cache.covers(h, 1100, 0));
    EXPECT_FALSE(cache.covers(h + 1, 1000, 1));
    EXPECT_FALSE(cache.covers(h, 999, 1));
    EXPECT_FALSE(cache.covers(h, 999, 2)) << "reaches into it from below";
    EXPECT_FALSE(cache.covers(h, 1099, 2));
    EXPECT_FALSE(cache.covers(h, 1101, 0));
    EXPECT_FALSE(cache.covers(h, 1000, UINT64_MAX));
    EXPECT_FALSE(cache.covers(h, UINT64_MAX - 10, 2000));
}

TEST(RegionCache, DropsARegionThatWasChangedOrRemoved) {
    RegionTable table;
    RegionCache changed, removed;
    const uint32_t h = table.add(region(1000, 100));
    ASSERT_EQ(table.check_and_remember(changed, h, 1000, 1, 0), RegionCheck::ok);
    ASSERT_TRUE(table.change(h, 1000, 7, 0));
    EXPECT_FALSE(changed.covers(h, 1000, 1));
    ASSERT_EQ(table.check_and_remember(removed, h, 1000, 1, 7), RegionCheck::ok);
    EXPECT_TRUE(removed.covers(h, 1000, 1));
    ASSERT_TRUE(table.remove(h, 0, nullptr));
    EXPECT_FALSE(removed.covers(h, 1000, 1));
    EXPECT_FALSE(removed.covers(0, 1000, 1));
}

TEST(RegionTable, WorksAtTheEndsOfTheAddressSpace) {
    RegionTable table;
    const uint32_t low = table.add(region(0, 10));
    const uint32_t high = table.add(region(UINT64_MAX - 9, 10));
    EXPECT_EQ(table.check(low, 0, 10, 0), RegionCheck::ok);
    EXPECT_EQ(table.check(high, UINT64_MAX - 9, 10, 0), RegionCheck::ok);
    EXPECT_EQ(table.check(high, UINT64_MAX, 2, 0), RegionCheck::out_of_range);
}

TEST(RegionTable, OnlyTwoDifferentRealTagsClash) {  // spec/compat V1-V4
    RegionTable table;
    const uint32_t plain = table.add(region(0x1000, 16, 0));
    const uint32_t tagged = table.add(region(0x1000, 16, 5));
    EXPECT_EQ(table.check(plain, 0x1000, 16, 0), RegionCheck::ok);
    EXPECT_EQ(table.check(plain, 0x1000, 16, 5), RegionCheck::ok);
    EXPECT_EQ(table.check(tagged, 0x1000, 16, 0), RegionCheck::ok);
    EXPECT_EQ(table.check(tagged, 0x1000, 16, 5), RegionCheck::ok);
    EXPECT_EQ(table.check(tagged, 0x1000, 16, 6), RegionCheck::wrong_ptag);
}

TEST(RegionTable, HasNoHandlesThatWereNotGiven) {
    RegionTable table;
    const uint32_t h = table.add(region(0x1000, 16));
    for (const uint32_t wrong : {0u, 1u, 0xFFFFFFFFu, h + 1, h ^ 0x80000000u, uint32_t{1} << kRegionIndexBits,
                                 kMaxRegions, kMaxRegions + 1, 0x1FFFFu}) {
        EXPECT_EQ(table.check(wrong, 0x1000, 1, 0), RegionCheck::bad_handle) << wrong;
        Region copy;
        EXPECT_FALSE(table.snapshot(wrong, &copy));
        EXPECT_FALSE(table.remove(wrong, 0, nullptr));
        EXPECT_FALSE(table.change(wrong, 0x1000, 1, 0));
    }
}

TEST(RegionTable, NeverGivesZeroOrAllOnesAndNoHandleTwiceForLong) {  // spec/compat M1
    RegionTable table;
    std::set<uint32_t> seen;
    for (int i = 0; i < 100'000; ++i) {
        const uint32_t h = table.add(region(0x1000, 16));
        ASSERT_NE(h, 0u);
        ASSERT_NE(h, 0xFFFFFFFFu);
        ASSERT_TRUE(seen.insert(h).second) << "handle " << h << " again after " << i;
        ASSERT_TRUE(table.remove(h, 0x1000, nullptr));
        ASSERT_EQ(table.check(h, 0x1000, 1, 0), RegionCheck::bad_handle);
        ASSERT_FALSE(table.remove(h, 0x1000, nullptr)) << "removed twice";
    }
    EXPECT_EQ(table.live(), 0u);
    EXPECT_EQ(table.bytes(), 0u);
}

TEST(RegionTable, HoldsExactlyWhatItSays) {
    RegionTable table;
    std::vector<uint32_t> handles;
    for (uint32_t i = 0; i < kMaxRegions; ++i) {
        handles.push_back(table.add(region(uint64_t{i} << 12, 4096)));
        ASSERT_NE(handles.back(), 0u) << i;
    }
    EXPECT_EQ(table.add(region(0, 1)), 0u) << "full";
    EXPECT_EQ(table.live(), kMaxRegions);
    EXPECT_EQ(table.bytes(), uint64_t{kMaxRegions} << 12);
    ASSERT_TRUE(table.remove(handles[12345], 0, nullptr));
    const uint32_t again = table.add(region(7, 7));
    ASSERT_NE(again, 0u);
    EXPECT_NE(again, handles[12345]);
    EXPECT_EQ(table.check(handles[12345], uint64_t{12345} << 12, 1, 0), RegionCheck::bad_handle);
    EXPECT_EQ(table.check(again, 7, 7, 0), RegionCheck::ok);
}

TEST(RegionTable, RemovesOnlyByTheAddressRegistered) {
    RegionTable table;
    const uint32_t h = table.add(region(0x1000, 64, 3, kRegionRdmaRead));
    EXPECT_FALSE(table.remove(h, 0x1001, nullptr));
    Region removed;
    ASSERT_TRUE(table.remove(h, 0x1000, &removed));
    EXPECT_EQ(removed.base, 0x1000u);
    EXPECT_EQ(removed.length, 64u);
    EXPECT_EQ(removed.ptag, 3u);
    EXPECT_EQ(removed.flags, uint32_t{kRegionRdmaRead});
}

TEST(RegionTable, ChangesTagAndFlagsByAnyAddressInside) {
    RegionTable table;
    const uint32_t h = table.add(region(0x1000, 64, 3));
    EXPECT_FALSE(table.change(h, 0x0FFF, 4, 0));
    EXPECT_FALSE(table.change(h, 0x1040, 4, 0));
    ASSERT_TRUE(table.change(h, 0x103F, 4, kRegionRdmaWrite));
    Region now;
    ASSERT_TRUE(table.snapshot(h, &now));
    EXPECT_EQ(now.ptag, 4u);
    EXPECT_EQ(now.flags, uint32_t{kRegionRdmaWrite});
    EXPECT_EQ(table.count_with_ptag(3), 0u);
    EXPECT_EQ(table.count_with_ptag(4), 1u);
    table.remove(h, 0, nullptr);
    EXPECT_EQ(table.count_with_ptag(4), 0u);
}

TEST(RegionTable, FindsSomeRegionThatContainsARange) {  // spec/compat M10
    RegionTable table;
    table.add(region(0x1000, 0x100, 1));
    const uint32_t second = table.add(region(0x5000, 0x100, 2));
    EXPECT_TRUE(table.find_containing(0x5010, 64, 2));
    EXPECT_TRUE(table.find_containing(0x5010, 64, 0));
    EXPECT_FALSE(table.find_containing(0x5010, 64, 1));
    EXPECT_FALSE(table.find_containing(0x50F0, 64, 2));
    table.remove(second, 0, nullptr);
    EXPECT_FALSE(table.find_containing(0x5010, 64, 2));
    EXPECT_FALSE(RegionView().find_containing(0, 1, 0));
}

TEST(RegionTable, IsSeenByPeersThatCannotWriteIt) {
    RegionTable table;
    const uint32_t h = table.add(region(0x1000, 64, 3, kRegionRdmaWrite));
    Fd given(table.open_read_only());
    ASSERT_TRUE(given.valid());
    EXPECT_EQ(::mmap(nullptr, RegionTable::segment_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, given.get(), 0),
              MAP_FAILED);
    const Segment mapped = Segment::map(std::move(given), RegionTable::segment_bytes(), Segment::Access::read_only);
    ASSERT_TRUE(mapped.valid());
    const RegionView view(reinterpret_cast<const RegionEntry*>(mapped.data()), kMaxRegions);
    EXPECT_EQ(view.check(h, 0x1000, 64, 3), RegionCheck::ok);
    EXPECT_TRUE(view.find_containing(0x1000, 64, 3));
    table.remove(h, 0, nullptr);
    EXPECT_EQ(view.check(h, 0x1000, 64, 3), RegionCheck::bad_handle);
}

// The owner registers and removes regions whose fields all follow from their base; whatever a reader is told
// is a whole entry of that handle or nothing.
TEST(RegionTableStress, ReadersNeverSeeAMixedEntry) {
    RegionTable table;
    std::atomic<uint32_t> published{0};
    std::atomic<bool> stop{false};
    std::atomic<uint64_t> good{0}, mixed{0}, misjudged{0};

    std::vector<std::thread> readers;
    for (int i = 0; i < 2; ++i) {
        readers.emplace_back([&] {
            while (!stop.load(std::memory_order_relaxed)) {
                const uint32_t h = published.load(std::memory_order_acquire);
                Region r;
                if (table.snapshot(h, &r)) {
                    ++good;
                    if (r.length != r.base / 16 || r.arena_offset != r.base + 1 || r.flags != r.ptag % 4) ++mixed;
                }
                // Base and length of one handle never change: never inside of more than it has.
                const RegionCheck past = table.check(h, 0x10'000'000, 0x10'000'000, 0);
                if (past == RegionCheck::ok) ++misjudged;
            }
        });
    }
    // Readers that got no processor at all have seen nothing: go on until they have.
    for (uint32_t i = 1; i <= 200'000 || (good == 0 && i < 20'000'000); ++i) {
        Region r = region(16 * (1 + i % 1000), 1 + i % 1000, i % 64, i % 64 % 4);
        r.arena_offset = r.base + 1;
        const uint32_t h = table.add(r);
        published.store(h, std::memory_order_release);
        table.change(h, r.base, (i + 1) % 64, (i + 1) % 64 % 4);
        // On one processor the readers might otherwise never run while an entry is there.
        if (i % 20'000 == 0) {
            const uint64_t before = good.load();
            while (good.load() == before) std::this_thread::yield();
        }
        table.remove(h, r.base, nullptr);
    }
    stop = true;
    for (auto& t : readers) t.join();
    EXPECT_GT(good, 0u);
    EXPECT_EQ(mixed, 0u);
    EXPECT_EQ(misjudged, 0u);
}

// The same for a copy of the entry, when owner and reader share a processor: the owner is preempted at any place of the
// change, and the reader makes all its tries before the owner goes on.
TEST(RegionTableStress, AChangeThatIsPreemptedNeverHidesTheRegion) {
    RegionTable table;
    const uint32_t h = table.add(region(0x1000, 64, 0));
    std::atomic<bool> stop{false};
    std::atomic<uint64_t> lost{0}, mixed{0}, looks{0};
    cpu_set_t allowed;
    ASSERT_EQ(::sched_getaffinity(0, sizeof allowed, &allowed), 0);
    int first = 0;
    while (!CPU_ISSET(first, &allowed)) ++first;
    const auto move_to_one_processor = [first] {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(first, &one);
        EXPECT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    };
    std::thread reader([&] {
        move_to_one_processor();
        while (!stop.load(std::memory_order_relaxed)) {
            ++looks;
            Region r;
            if (!table.snapshot(h, &r)) ++lost;
            if (r.flags != r.ptag % 4) ++mixed;
        }
    });
    std::atomic<pid_t> owner_thread{0};
    std::thread owner([&] {
        move_to_one_processor();
        owner_thread = ::gettid();
        for (uint32_t i = 0; !stop.load(std::memory_order_relaxed); ++i) table.change(h, 0x1000, i % 64, i % 4);
    });
    // So often, the scheduler has let the reader look in the middle of a change.
    constexpr long kInterruptions = 300;
    EXPECT_TRUE(tests::eventually("the owner is interrupted often", [&] {
        return owner_thread != 0 && tests::interruptions_so_far(owner_thread) > kInterruptions;
    }));
    stop = true;
    reader.join();
    owner.join();
    EXPECT_GT(looks, 0u);
    EXPECT_EQ(lost, 0u);
    EXPECT_EQ(mixed, 0u);
}

// VipSetMemAttributes in the middle of transfers: the region is always there (spec/calls 4.5).
TEST(RegionTableStress, AChangeNeverHidesTheRegion) {
    RegionTable table;
    const uint32_t h = table.add(region(0x1000, 64, 0));
    std::atomic<bool> stop{false};
    std::atomic<uint64_t> lost{0}, looks{0};
    std::thread reader([&] {
        while (!stop.load(std::memory_order_relaxed)) {
            ++looks;
            if (table.check(h, 0x1000, 64, 0) != RegionCheck::ok) ++lost;
        }
    });
    while (looks == 0) std::this_thread::yield();
    for (uint32_t i = 0; i < 200'000; ++i) ASSERT_TRUE(table.change(h, 0x1000, i % 7, i % 4));
    stop = true;
    reader.join();
    EXPECT_EQ(lost, 0u);
}

TEST(RegionTableStress, ManyThreadsRegisterAtOnce) {
    RegionTable table;
    std::vector<std::thread> threads;
    std::atomic<uint64_t> failures{0};
    for (uint32_t t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            for (uint32_t i = 0; i < 20'000; ++i) {
                const uint64_t base = (uint64_t{t} << 40) + i;
                const uint32_t h = table.add(region(base, 10));
                if (h == 0 || table.check(h, base, 10, 0) != RegionCheck::ok || !table.remove(h, base, nullptr))
                    ++failures;
            }
        });
    }
    for (auto& t : threads) t.join();
    EXPECT_EQ(failures, 0u);
    EXPECT_EQ(table.live(), 0u);
}

}  // namespace
}  // namespace viaduct
