// SPDX-License-Identifier: BSD-2-Clause
// Handles that applications hold for our objects. A handle is kind, generation and index, never a pointer:
// looking one up is a bounds check, one load and one comparison, whatever bits the caller passes. The table
// lies in memory that the kernel wipes in forked children (MADV_WIPEONFORK): there every inherited handle is
// simply unknown (spec/architecture 7).
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "core/sync/atomic_equals.hpp"

namespace viaduct {

enum class HandleKind : uint32_t { nic = 1, vi = 2, cq = 3, ptag = 4, connection = 5 };

class HandleTable {
public:
    static constexpr uint32_t kIndexBits = 18;
    static constexpr uint32_t kCapacity = 1u << kIndexBits;

    // Maps the table; false when the kernel refuses.
    bool open();

    // A new handle for `object`, or 0 when the table is full. Values are never 0 and distinct over the life
    // of the process until a generation wraps (2^32; 2^11 where pointers have 32 bits), forked children
    // included.
    uintptr_t insert(HandleKind kind, void* object);

    // The object, or nullptr when the handle is not live or of another kind. Any thread, any value. Under a
    // race with remove() and insert() it may be another object of that kind: callers look at the handle in
    // the object once it cannot change any more.
    void* find(const void* handle, HandleKind kind) const {
        const auto bits = reinterpret_cast<uintptr_t>(handle);
        const Slot* slots = slots_.load(std::memory_order_acquire);
        const uintptr_t rest = bits - static_cast<uintptr_t>(kind);
        // The kind is never 0, so a null handle ends here too.
        if (slots == nullptr || (rest & kKindMask) != 0) [[unlikely]]
            return nullptr;
        const Slot& slot = slots[(rest >> kKindShift) & (kCapacity - 1)];
        if (!atomic_equals_acquire(slot.handle, bits)) [[unlikely]]
            return nullptr;
        // A slot serves objects of one kind only: had it been emptied and filled again in between, this would
        // still be an object of the kind asked for, and its lock tells whether the handle is its own.
        void* object = slot.object.load(std::memory_order_acquire);
        if (object == nullptr) __builtin_unreachable();  // it was there before the handle
        return object;
    }

    // Makes the handle dead; false when it was already.
    bool remove(const void* handle);

    // In a forked child, before any other call there: the free list starts anew (the kernel has wiped the
    // slots).
    void reset_after_fork();
    // The kernel has wiped the table since open(): this is a child, made by fork() or past its handlers
    // (_Fork, clone).
    bool was_wiped() const {
        const Slot* slots = slots_.load(std::memory_order_acquire);
        return slots != nullptr && slots[kMark].handle.load(std::memory_order_relaxed) == 0;
    }

private:
    // bits 0-2 kind, 3-20 index, above it the generation.
    static constexpr uint32_t kKindShift = 3;
    static constexpr uintptr_t kKindMask = 7;
    struct Slot {
        std::atomic<uintptr_t> handle;
        std::atomic<void*> object;
    };
    // Ordinary memory, which a child inherits: its handles differ from those of its parent.
    struct Record {
        uint32_t generation;
        uint32_t next_free;
    };
    // Free indices of one kind; first in, first out, so that an index comes back late.
    struct FreeList {
        uint32_t head = 0, tail = 0, count = 0;
    };
    static constexpr uint32_t kMark = kCapacity - 1;  // a slot that is no handle's and never empty
    static constexpr uint32_t kKinds = 8;
    uint32_t take_index(FreeList&);

    std::atomic<Slot*> slots_{nullptr};
    Record* records_ = nullptr;
    uint32_t used_ = 0;  // indices below have been given out
    FreeList free_[kKinds];
    std::mutex mutex_;
};

}  // namespace viaduct
