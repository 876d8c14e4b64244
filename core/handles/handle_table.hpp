// SPDX-License-Identifier: BSD-2-Clause
// Handles that applications hold for our objects. A handle is kind, generation and index, never a pointer:
// looking one up is a bounds check, one load and one comparison, whatever bits the caller passes. The table
// lies in memory that the kernel wipes in forked children (MADV_WIPEONFORK): there every inherited handle is
// simply unknown (architecture §7).
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace viaduct {

enum class HandleKind : uint32_t { nic = 1, vi = 2, cq = 3, ptag = 4, connection = 5 };

class HandleTable {
public:
    static constexpr uint32_t kIndexBits = 18;
    static constexpr uint32_t kCapacity = 1u << kIndexBits;

    // Maps the table; false when the kernel refuses.
    bool open();

    // A new handle for `object`, or 0 when the table is full. Values are multiples of 8, never 0, distinct
    // over the life of the process until a generation of 2^32 wraps.
    uintptr_t insert(HandleKind kind, void* object);

    // The object, or nullptr when the handle is not live or of another kind. Any thread, any value.
    void* find(const void* handle, HandleKind kind) const {
        const auto bits = reinterpret_cast<uintptr_t>(handle);
        const Slot& slot = slots_[(bits >> kKindShift) & (kCapacity - 1)];
        if (slot.handle.load(std::memory_order_acquire) != bits || bits == 0) [[unlikely]]
            return nullptr;
        if ((bits & kKindMask) != static_cast<uintptr_t>(kind)) [[unlikely]]
            return nullptr;
        return slot.object.load(std::memory_order_relaxed);
    }

    // Makes the handle dead; false when it was already.
    bool remove(const void* handle);

    // In a forked child: the free list starts anew (the slots were wiped by the kernel).
    void reset_after_fork();

private:
    // bits 0-2 kind, 3.. index, above it the generation.
    static constexpr uint32_t kKindShift = 3;
    static constexpr uintptr_t kKindMask = 7;
    struct Slot {
        std::atomic<uintptr_t> handle;
        std::atomic<void*> object;
    };
    Slot* slots_ = nullptr;
    uint32_t* generations_ = nullptr;  // ordinary memory
    uint32_t* free_next_ = nullptr;
    uint32_t free_head_ = 0, free_tail_ = 0, high_water_ = 0;  // first-in first-out: an index comes back late
    std::mutex mutex_;
};

}  // namespace viaduct
