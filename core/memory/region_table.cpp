// SPDX-License-Identifier: BSD-2-Clause
// The slow path of the region table: the owner adds, removes and changes entries under the table's mutex; readers in
// any process take consistent copies without a lock. The hot check is inline in the header. What a hostile owner can do
// to readers is in docs/shared-words.md.
#include "core/memory/region_table.hpp"

#include <pthread.h>

#include <new>

#include "core/shm/fd.hpp"
#include "core/sync/pause.hpp"

namespace viaduct {

namespace {

constexpr uint32_t kIndexMask = (1u << kRegionIndexBits) - 1;
constexpr uint32_t kLastGeneration = (1u << (32 - kRegionIndexBits)) - 1;
static_assert(kMaxRegions < kIndexMask, "all-ones is never a handle (spec/compat M1)");

// Free entries are reused only when more than this many are free: so a removed handle's entry stays unused for at least
// this many registrations, until all kMaxRegions indices have been used; and a program that registers around every
// transfer (spec/compat M13) uses one page of entries.
constexpr uint32_t kQuarantinedEntries = 48;

// A copy is made again when the version has changed meanwhile: another registration may have come to have the same
// handle. An owner needs much longer for a change than a reader for a copy, so only a hostile one reaches this limit.
constexpr int kMostCopies = 1000;

// All tables of this process, linked by next_, for any_registered(). Lock order: tables_mutex comes before a table's
// mutex_.
RegionTable* tables = nullptr;
std::mutex tables_mutex;

bool inside(uint64_t base, uint64_t size, uint64_t address, uint64_t length) {
    return length <= size && address - base <= size - length;
}

void copy_fields(const RegionEntry& e, Region* out) {
    out->base = e.base.load(std::memory_order_relaxed);
    out->length = e.length.load(std::memory_order_relaxed);
    const auto rights = MemoryRights::of(e.rights.load(std::memory_order_relaxed));
    out->flags = rights.flags;
    out->ptag = rights.ptag;
    out->arena = e.arena.load(std::memory_order_relaxed);
    out->arena_offset = e.arena_offset.load(std::memory_order_relaxed);
}

}  // namespace

bool RegionView::snapshot(uint32_t handle, Region* out) const {
    const uint32_t index = handle & kIndexMask;
    if (index == 0 || index > capacity_) return false;
    const RegionEntry& e = entries_[index];
    for (int copies = 0; copies < kMostCopies; ++copies) {
        if (e.handle.load(std::memory_order_acquire) != handle) return false;
        const uint32_t before = e.version.load(std::memory_order_acquire);
        copy_fields(e, out);
        std::atomic_thread_fence(std::memory_order_acquire);
        if (e.handle.load(std::memory_order_relaxed) != handle) return false;
        if (e.version.load(std::memory_order_relaxed) == before) return true;
        cpu_pause();
    }
    return false;
}

constinit const RegionEntry RegionCache::kNoRegion{};

RegionCheck RegionView::check_and_remember(RegionCache& cache, uint32_t handle, uint64_t address,
                                           uint64_t length, uint32_t ptag) const {
    const RegionCheck answer = check(handle, address, length, ptag);
    if (answer != RegionCheck::ok) return answer;
    const RegionEntry& e = entries_[handle & kIndexMask];
    RegionCache fresh;
    fresh.entry = &e;
    const uint32_t version = e.version.load(std::memory_order_acquire);
    fresh.live = uint64_t{version} << 32 | handle;
    fresh.base = e.base.load(std::memory_order_relaxed);
    fresh.length = e.length.load(std::memory_order_relaxed);
    const uint32_t tag = MemoryRights::of(e.rights.load(std::memory_order_relaxed)).ptag;
    std::atomic_thread_fence(std::memory_order_acquire);
    // Remembered only if all of it was read between two changes, and the tag is still right.
    if (e.version.load(std::memory_order_relaxed) == version &&
        e.handle.load(std::memory_order_relaxed) == handle && ptags_agree(tag, ptag))
        cache = fresh;
    return answer;
}

bool RegionView::find_containing(uint64_t address, uint64_t length, uint32_t ptag) const {
    if (entries_ == nullptr) return false;
    uint32_t last = entries_[0].generation.load(std::memory_order_acquire);
    if (last > capacity_) last = capacity_;
    for (uint32_t index = 1; index <= last; ++index) {
        const uint32_t handle = entries_[index].handle.load(std::memory_order_acquire);
        if (handle != 0 && check(handle, address, length, ptag) == RegionCheck::ok) return true;
    }
    return false;
}

// Before the first table is in the list. Not a guarded static: a child that is forked meanwhile would wait for ever for
// a thread that it does not have. That two threads may both register does no harm. Where it fails (ENOMEM) the next
// table tries again; meanwhile the handler of the library (vipl/library.cpp) empties the list in a child, and no NIC is
// opened where that cannot be registered.
void RegionTable::watch_forks() {
    static constinit std::atomic<bool> watching{false};
    if (!watching.load(std::memory_order_acquire))
        watching.store(::pthread_atfork(nullptr, nullptr, reset_after_fork) == 0, std::memory_order_release);
}

RegionTable::RegionTable()
    : segment_(Segment::create("viaduct-regions", segment_bytes(), Segment::Access::read_only)) {
    if (!segment_.valid()) return;
    table_ = reinterpret_cast<RegionEntry*>(segment_.data());  // zeroed pages are free entries
    entries_ = table_;
    capacity_ = kMaxRegions;
    // A child does not inherit the entries (MADV_DONTFORK, core/shm/segment.cpp); it inherits the list.
    watch_forks();
    const std::scoped_lock lock(tables_mutex);
    next_ = tables;
    tables = this;
    set_registered_memory_check(any_registered);
}

RegionTable::~RegionTable() {
    const std::scoped_lock lock(tables_mutex);
    RegionTable** at = &tables;
    while (*at != nullptr && *at != this) at = &(*at)->next_;
    if (*at == this) *at = next_;
}

void RegionTable::reset_after_fork() {
    new (&tables_mutex) std::mutex;
    tables = nullptr;
}

bool RegionTable::any_registered(uintptr_t begin, size_t bytes) {
    const std::scoped_lock lock(tables_mutex);
    for (const RegionTable* table = tables; table != nullptr; table = table->next_)
        if (table->has_region_in(begin, bytes)) return true;
    return false;
}

bool RegionTable::has_region_in(uintptr_t begin, size_t bytes) const {
    const std::scoped_lock lock(mutex_);
    for (uint32_t index = 1; index <= high_water_; ++index) {
        const RegionEntry& e = table_[index];
        if (e.handle.load(std::memory_order_relaxed) == 0) continue;
        const uint64_t base = e.base.load(std::memory_order_relaxed);
        // Two ranges overlap when the one with the higher start begins inside the other.
        if (begin >= base ? begin - base < e.length.load(std::memory_order_relaxed) : base - begin < bytes) return true;
    }
    return false;
}

int RegionTable::open_read_only() const { return segment_.duplicate(Segment::Access::read_only).release(); }

// A free index, or 0 when the table is full. mutex_ is held. `arena` of a free entry is the next free index.
uint32_t RegionTable::take_index() {
    if (high_water_ < kMaxRegions && free_count_ <= kQuarantinedEntries) {
        const uint32_t index = ++high_water_;
        table_[0].generation.store(high_water_, std::memory_order_release);
        return index;
    }
    if (free_count_ == 0) return 0;
    const uint32_t index = free_head_;
    free_head_ = table_[index].arena.load(std::memory_order_relaxed);
    if (--free_count_ == 0) free_tail_ = 0;
    return index;
}

RegionEntry* RegionTable::live_entry(uint32_t handle) const {
    const uint32_t index = handle & kIndexMask;
    if (index == 0 || index > high_water_) return nullptr;
    RegionEntry& e = table_[index];
    return e.handle.load(std::memory_order_relaxed) == handle ? &e : nullptr;
}

uint32_t RegionTable::add(const Region& region) {
    const std::scoped_lock lock(mutex_);
    if (table_ == nullptr) return 0;
    const uint32_t index = take_index();
    if (index == 0) return 0;
    RegionEntry& e = table_[index];
    uint32_t generation = e.generation.load(std::memory_order_relaxed) + 1;
    if (generation > kLastGeneration) generation = 1;
    const uint32_t handle = generation << kRegionIndexBits | index;

    // The version changes before any field: a reader that sees a field of the new region then finds that handle or
    // version is not the one it began with.
    e.version.store(e.version.load(std::memory_order_relaxed) + 2, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    e.generation.store(generation, std::memory_order_relaxed);
    e.base.store(region.base, std::memory_order_relaxed);
    e.length.store(region.length, std::memory_order_relaxed);
    e.rights.store(MemoryRights{region.flags, region.ptag}.word(), std::memory_order_relaxed);
    e.arena.store(region.arena, std::memory_order_relaxed);
    e.arena_offset.store(region.arena_offset, std::memory_order_relaxed);
    e.handle.store(handle, std::memory_order_release);

    live_.fetch_add(1, std::memory_order_relaxed);
    bytes_.fetch_add(region.length, std::memory_order_relaxed);
    return handle;
}

bool RegionTable::remove(uint32_t handle, uint64_t base, Region* removed) {
    const std::scoped_lock lock(mutex_);
    RegionEntry* e = live_entry(handle);
    if (e == nullptr) return false;
    Region old;
    copy_fields(*e, &old);
    if (base != 0 && base != old.base) return false;
    if (removed != nullptr) *removed = old;

    e->handle.store(0, std::memory_order_relaxed);
    // A reader of a field written from here on finds the handle invalid when it checks again.
    std::atomic_thread_fence(std::memory_order_release);
    const uint32_t index = handle & kIndexMask;
    e->arena.store(0, std::memory_order_relaxed);
    if (free_count_ == 0) {
        free_head_ = index;
    } else {
        table_[free_tail_].arena.store(index, std::memory_order_relaxed);
    }
    free_tail_ = index;
    ++free_count_;

    live_.fetch_sub(1, std::memory_order_relaxed);
    bytes_.fetch_sub(old.length, std::memory_order_relaxed);
    return true;
}

// The handle stays live throughout: an operation under way sees the old tag or the new one, never a region
// that is not there (spec/calls 4.5).
bool RegionTable::change(uint32_t handle, uint64_t address_inside, uint32_t ptag, uint32_t flags) {
    const std::scoped_lock lock(mutex_);
    RegionEntry* e = live_entry(handle);
    if (e == nullptr) return false;
    const uint64_t base = e->base.load(std::memory_order_relaxed);
    if (!inside(base, e->length.load(std::memory_order_relaxed), address_inside, 1)) return false;

    e->rights.store(MemoryRights{flags, ptag}.word(), std::memory_order_relaxed);
    // After the rights: a check that is remembered by the new version has been made with the new rights.
    e->version.store(e->version.load(std::memory_order_relaxed) + 2, std::memory_order_release);
    return true;
}

uint32_t RegionTable::count_with_ptag(uint32_t ptag) const {
    const std::scoped_lock lock(mutex_);
    uint32_t count = 0;
    for (uint32_t index = 1; index <= high_water_; ++index) {
        const RegionEntry& e = table_[index];
        const auto rights = MemoryRights::of(e.rights.load(std::memory_order_relaxed));
        if (e.handle.load(std::memory_order_relaxed) != 0 && rights.ptag == ptag) ++count;
    }
    return count;
}

}  // namespace viaduct
