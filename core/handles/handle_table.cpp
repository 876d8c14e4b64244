// SPDX-License-Identifier: BSD-2-Clause
// Making and ending handles; looking them up is inline in the header.
#include "core/handles/handle_table.hpp"

#include <sys/mman.h>

#include <new>

#include "core/shm/own_mapping.hpp"

namespace viaduct {

namespace {

// An index is reused only when more than so many are free. So a dead handle stays invalid for a while even where
// generations are short and repeat (32-bit).
constexpr uint32_t kRestingIndices = 256;

void* map_zeroed(size_t bytes) {
    return map_own(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
}

}  // namespace

bool HandleTable::open() {
    const std::scoped_lock lock(mutex_);
    if (Slot* there = slots_.load(std::memory_order_relaxed); there != nullptr) {
        there[kMark].handle.store(1, std::memory_order_relaxed);
        return true;
    }
    void* slots = map_zeroed(sizeof(Slot) * kCapacity);
    void* records = map_zeroed(sizeof(Record) * kCapacity);
    if (slots == nullptr || records == nullptr ||
        ::madvise(slots, sizeof(Slot) * kCapacity, MADV_WIPEONFORK) != 0) {
        if (slots != nullptr) ::munmap(slots, sizeof(Slot) * kCapacity);
        if (records != nullptr) ::munmap(records, sizeof(Record) * kCapacity);
        return false;
    }
    records_ = static_cast<Record*>(records);
    static_cast<Slot*>(slots)[kMark].handle.store(1, std::memory_order_relaxed);
    slots_.store(static_cast<Slot*>(slots), std::memory_order_release);
    return true;
}

// A free index, or kCapacity when there is none. The mutex is held.
uint32_t HandleTable::take_index(FreeList& free) {
    if (used_ < kMark && free.count <= kRestingIndices) return used_++;
    if (free.count == 0) return kCapacity;
    const uint32_t index = free.head;
    free.head = records_[index].next_free;
    --free.count;
    return index;
}

uintptr_t HandleTable::insert(HandleKind kind, void* object) {
    const std::scoped_lock lock(mutex_);
    Slot* slots = slots_.load(std::memory_order_relaxed);
    if (slots == nullptr) return 0;
    const uint32_t index = take_index(free_[static_cast<uint32_t>(kind)]);
    if (index == kCapacity) return 0;
    const uint32_t generation = ++records_[index].generation;
    const uintptr_t handle = (static_cast<uintptr_t>(generation) << (kKindShift + kIndexBits)) |
                             (static_cast<uintptr_t>(index) << kKindShift) | static_cast<uintptr_t>(kind);
    slots[index].object.store(object, std::memory_order_relaxed);
    slots[index].handle.store(handle, std::memory_order_release);
    return handle;
}

bool HandleTable::remove(const void* handle) {
    const auto bits = reinterpret_cast<uintptr_t>(handle);
    const uint32_t index = static_cast<uint32_t>((bits >> kKindShift) & (kCapacity - 1));
    const std::scoped_lock lock(mutex_);
    Slot* slots = slots_.load(std::memory_order_relaxed);
    if (slots == nullptr || bits == 0 || slots[index].handle.load(std::memory_order_relaxed) != bits)
        return false;
    // The pointer stays in the slot for readers that have just compared the handle: objects are never freed.
    slots[index].handle.store(0, std::memory_order_relaxed);

    FreeList& free = free_[bits & kKindMask];
    if (free.count == 0) {
        free.head = index;
    } else {
        records_[free.tail].next_free = index;
    }
    free.tail = index;
    ++free.count;
    return true;
}

void HandleTable::reset_after_fork() {
    // The child has one thread; the thread that held the mutex in the parent does not exist here.
    new (&mutex_) std::mutex;
    used_ = 0;
    for (FreeList& free : free_) free = FreeList();
}

}  // namespace viaduct
