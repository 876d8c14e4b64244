// SPDX-License-Identifier: BSD-2-Clause
// The table of registered memory of one NIC context, one 64-byte entry per region. It lies in a shared
// segment that only the owner may write: peers map it read-only, so an initiator checks an RDMA target
// exactly as a NIC would, without asking. A VIP_MEM_HANDLE is (generation << 17 | index): never 0, never
// all-ones (spec/compat M1), stale ones are recognised.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "core/shm/own_mapping.hpp"
#include "core/shm/segment.hpp"
#include "core/sync/atomic_equals.hpp"

namespace viaduct {

enum RegionFlag : uint32_t { kRegionRdmaWrite = 1u << 0, kRegionRdmaRead = 1u << 1 };

// A consistent copy of one entry.
struct Region {
    uint64_t base = 0;
    uint64_t length = 0;
    uint32_t flags = 0;
    uint32_t ptag = 0;   // 0: the NULL tag, which clashes with none (spec/compat V1-V4)
    uint32_t arena = 0;  // 0: plain memory; else the shared arena it lies in (mapped directly by peers)
    uint64_t arena_offset = 0;  // of base, in that arena
};

// True when memory with tag `a` may be used by a VI with tag `b`: only two different real tags clash
// (spec/compat V2, V4).
inline bool ptags_agree(uint32_t a, uint32_t b) { return a == b || a == 0 || b == 0; }

// What a region allows, as one word of its entry.
struct MemoryRights {
    uint32_t flags = 0;
    uint32_t ptag = 0;

    static MemoryRights of(uint64_t word) {
        return {static_cast<uint32_t>(word), static_cast<uint32_t>(word >> 32)};
    }
    uint64_t word() const { return uint64_t{ptag} << 32 | flags; }
};

// The entry as it lies in shared memory. `handle` is 0 while the entry is free or being filled; every reader
// reads it before and after the fields. Entry 0 is no region: its `generation` is the highest index ever
// used, so that a reader that goes through all entries stops there and touches no unused page.
struct alignas(64) RegionEntry {
    std::atomic<uint32_t> handle;
    // Grows with every use and after every change of the entry.
    std::atomic<uint32_t> version;
    std::atomic<uint64_t> base;
    std::atomic<uint64_t> length;
    // Tag and flags (MemoryRights): one word, so that VipSetMemAttributes changes both at once.
    std::atomic<uint64_t> rights;
    std::atomic<uint32_t> arena;
    std::atomic<uint32_t> generation;
    std::atomic<uint64_t> arena_offset;

    // Whether it has that handle and, in the upper half, that version.
    bool is_still(uint64_t live) const { return atomic_pair_equals_acquire(handle, version, live); }
};
static_assert(sizeof(RegionEntry) == 64 && offsetof(RegionEntry, version) == sizeof(uint32_t));
static_assert(offsetof(RegionEntry, base) == 8 && offsetof(RegionEntry, generation) == 36 &&
              offsetof(RegionEntry, arena_offset) == 40);

inline constexpr uint32_t kRegionIndexBits = 17;
inline constexpr uint32_t kMaxRegions = 65536;  // spec/limits 9; indices 1..kMaxRegions

enum class RegionCheck : uint8_t { ok, bad_handle, out_of_range, wrong_ptag };

// What a check by the table's owner has found, for the next one of the same region: programs keep their
// descriptors and buffers in few regions. Used by one thread at a time, for one tag; clear() when that
// changes, or the table. An entry that still has its handle and its version has not changed since it was
// looked at.
struct RegionCache {
    const RegionEntry* entry = &kNoRegion;
    uint64_t live = uint64_t{1} << 32;  // handle and version of *entry; these match none
    uint64_t base = 0;
    uint64_t length = 0;

    void clear() { *this = RegionCache(); }
    // The check in a few instructions; false only says that the whole one has to be made.
    bool covers(uint32_t handle, uint64_t address, uint64_t bytes) const {
        uint64_t end;
        return entry->is_still(live) && static_cast<uint32_t>(live) == handle &&
               !__builtin_add_overflow(address - base, bytes, &end) && end <= length;
    }

private:
    static constinit const RegionEntry kNoRegion;
};

// Read access, for owner and peers alike. Every function may be called by any thread at any time.
class RegionView {
public:
    RegionView() = default;
    RegionView(const RegionEntry* entries, uint32_t capacity) : entries_(entries), capacity_(capacity) {}

    // The hot check of a data or address segment: is [address, address + length) inside that live region,
    // with an agreeing tag?
    RegionCheck check(uint32_t handle, uint64_t address, uint64_t length, uint32_t ptag) const {
        const uint32_t index = handle & ((1u << kRegionIndexBits) - 1);
        if (index == 0 || index > capacity_) [[unlikely]]
            return RegionCheck::bad_handle;
        const RegionEntry& e = entries_[index];
        if (e.handle.load(std::memory_order_acquire) != handle) [[unlikely]]
            return RegionCheck::bad_handle;
        const uint64_t base = e.base.load(std::memory_order_relaxed);
        const uint64_t size = e.length.load(std::memory_order_relaxed);
        const uint32_t tag = MemoryRights::of(e.rights.load(std::memory_order_relaxed)).ptag;
        // address - base wraps to a huge number when address lies below: one comparison covers both ends.
        if (length > size || address - base > size - length) [[unlikely]]
            return RegionCheck::out_of_range;
        if (!ptags_agree(tag, ptag)) [[unlikely]]
            return RegionCheck::wrong_ptag;
        std::atomic_thread_fence(std::memory_order_acquire);
        if (e.handle.load(std::memory_order_relaxed) != handle) [[unlikely]]
            return RegionCheck::bad_handle;
        return RegionCheck::ok;
    }

    // The same, and the region is remembered for RegionCache::covers().
    RegionCheck check_and_remember(RegionCache&, uint32_t handle, uint64_t address, uint64_t length,
                                   uint32_t ptag) const;

    // A consistent copy; false when the handle is not live. A region is there at every moment of a change of its rights
    // (spec/calls 4.5).
    bool snapshot(uint32_t handle, Region* out) const;
    // The word that holds the handle's value for as long as it is live; null for one that never can be.
    const std::atomic<uint32_t>* live_word(uint32_t handle) const {
        const uint32_t index = handle & ((1u << kRegionIndexBits) - 1);
        return index == 0 || index > capacity_ ? nullptr : &entries_[index].handle;
    }
    // Any live region that contains the range and has an agreeing tag (spec/compat M10); linear, slow path
    // only.
    bool find_containing(uint64_t address, uint64_t length, uint32_t ptag) const;

protected:
    const RegionEntry* entries_ = nullptr;
    uint32_t capacity_ = 0;
};

// The owner's side. Calls lock inside; each is a few hundred nanoseconds at most.
class RegionTable : public RegionView {
public:
    // Makes the segment (sparse: pages are used as entries are). Check valid() afterwards.
    RegionTable();
    ~RegionTable();
    RegionTable(const RegionTable&) = delete;
    RegionTable& operator=(const RegionTable&) = delete;
    // In a forked child, which has no registered memory: empties the list of tables. A fork() calls it; after a _Fork()
    // the library does.
    static void reset_after_fork();
    // For a provider, to hand to set_registered_memory_check(): as a loaded object it has its own copies of that
    // function and of the list of tables, and its list is empty. This function pointer uses the list of libvipl.
    AnyRegistered asker() const { return asker_; }
    bool valid() const { return segment_.valid(); }
    // A descriptor that peers can map read-only and nothing else; the caller owns it. -1 on failure.
    int open_read_only() const;
    // False: the program has closed the segment's descriptor, so that no further peer can map the table.
    bool can_be_shown() const { return segment_.has_fd(); }
    // Behind the entries lies a page for the provider's words, which peers may read and only this process can write.
    static constexpr uint64_t kOwnerPageBytes = 4096;
    static constexpr uint64_t owner_page_at() {
        return (sizeof(RegionEntry) * (kMaxRegions + 1) + kOwnerPageBytes - 1) / kOwnerPageBytes *
               kOwnerPageBytes;
    }
    static constexpr uint64_t segment_bytes() { return owner_page_at() + kOwnerPageBytes; }
    std::byte* owner_page() const { return segment_.data() + owner_page_at(); }

    // 0 when the table is full. The caller has checked address, length, tag and limits.
    uint32_t add(const Region& region);
    // False when the handle is not live or, with `base` non-zero, its region does not start at `base`.
    bool remove(uint32_t handle, uint64_t base, Region* removed);
    // Replaces tag and flags (VipSetMemAttributes). False when the handle is not live or its region does not contain
    // `address_inside`.
    bool change(uint32_t handle, uint64_t address_inside, uint32_t ptag, uint32_t flags);
    // How many live regions use a tag (VipDestroyPtag).
    uint32_t count_with_ptag(uint32_t ptag) const;
    uint32_t live() const { return live_.load(std::memory_order_relaxed); }
    uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

private:
    static void watch_forks();
    static bool any_registered(uintptr_t begin, size_t bytes);  // of any table of the process
    bool has_region_in(uintptr_t begin, size_t bytes) const;
    uint32_t take_index();
    RegionEntry* live_entry(uint32_t handle) const;

    Segment segment_;
    RegionEntry* table_ = nullptr;
    mutable std::mutex mutex_;
    std::atomic<uint32_t> live_{0};
    std::atomic<uint64_t> bytes_{0};
    uint32_t high_water_ = 0;  // highest index ever used
    // First-in first-out list of the free entries, linked by their `arena`, so that an index is reused late.
    uint32_t free_head_ = 0;
    uint32_t free_tail_ = 0;
    uint32_t free_count_ = 0;
    const AnyRegistered asker_ = any_registered;
    RegionTable* next_ = nullptr;  // of the process' tables
};

}  // namespace viaduct
