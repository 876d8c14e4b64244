// SPDX-License-Identifier: BSD-2-Clause
// The slow half of a completion ring: making, resizing, purging. Pushing and popping are inline in the
// header.
#include "core/vi/completion_queue.hpp"

#include <bit>
#include <mutex>
#include <new>

namespace viaduct {

namespace {

constexpr uint32_t kMaxEntries = 1u << 30;  // far above any MaxCQEntries; keeps the rounding below 2^32

CompletionRing::Entry* new_slots(uint32_t entries) {
    if (entries == 0 || entries > kMaxEntries) return nullptr;
    return new (std::nothrow) CompletionRing::Entry[std::bit_ceil(entries)];
}

}  // namespace

bool CompletionRing::allocate(uint32_t entries) {
    std::unique_ptr<Entry[]> slots(new_slots(entries));
    if (!slots) return false;
    const std::scoped_lock lock(lock_);
    slots_.swap(slots);
    mask_ = std::bit_ceil(entries) - 1;
    capacity_.store(entries, std::memory_order_relaxed);
    head_ = tail_ = 0;
    count_.store(0, std::memory_order_release);
    return true;
}

void CompletionRing::release() {
    std::unique_ptr<Entry[]> old;
    const std::scoped_lock lock(lock_);
    old.swap(slots_);
    mask_ = 0;
    capacity_.store(0, std::memory_order_relaxed);
    head_ = tail_ = 0;
    count_.store(0, std::memory_order_release);
}

bool CompletionRing::resize(uint32_t entries) {
    std::unique_ptr<Entry[]> slots(new_slots(entries));
    if (!slots) return false;
    const uint32_t mask = std::bit_ceil(entries) - 1;
    const std::scoped_lock lock(lock_);
    const uint32_t held = tail_ - head_;
    if (held > entries) return false;  // spec/calls 4.7: never below what is there
    for (uint32_t i = 0; i < held; ++i) slots[i] = slots_[(head_ + i) & mask_];
    slots_.swap(slots);
    mask_ = mask;
    capacity_.store(entries, std::memory_order_relaxed);
    head_ = 0;
    tail_ = held;
    return true;
}

void CompletionRing::purge(const WorkQueue* queue) {
    const std::scoped_lock lock(lock_);
    uint32_t kept = head_;
    for (uint32_t i = head_; i != tail_; ++i) {
        const Entry entry = slots_[i & mask_];
        if (entry.queue != queue) slots_[kept++ & mask_] = entry;
    }
    tail_ = kept;
    count_.store(tail_ - head_, std::memory_order_release);
}

}  // namespace viaduct
