// SPDX-License-Identifier: BSD-2-Clause
// The ring of a completion queue: which VI and which of its queues has completed a descriptor. Any thread
// pushes (holding a work queue's lock) and any thread pops. Lock order: work queue before completion queue.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "core/sync/biased_lock.hpp"

namespace viaduct {

struct WorkQueue;

class CompletionRing {
public:
    struct Entry {
        WorkQueue* queue = nullptr;
    };

    // `entries` is exactly what can be held, from 1 up (spec/compat Q3). False when memory is short. Empties
    // the ring; for objects that are used again, when no other thread uses it.
    bool allocate(uint32_t entries);
    void release();

    // False on overflow: the entry is not stored, nothing is overwritten (spec/calls 4.7 rule 5).
    [[gnu::always_inline]] bool push(WorkQueue* queue) {
        const BiasedLockGuard held(lock_);
        const uint32_t n = tail_ - head_;
        const bool fits = n < capacity_.load(std::memory_order_relaxed);
        if (fits) [[likely]] {
            slots_[tail_ & mask_].queue = queue;
            tail_ = tail_ + 1;
            count_.store(n + 1, std::memory_order_release);
        }
        return fits;
    }

    // The oldest entry, or nullptr.
    [[gnu::always_inline]] WorkQueue* pop() {
        if (count_.load(std::memory_order_acquire) == 0) return nullptr;  // one load when there is nothing
        const BiasedLockGuard held(lock_);
        WorkQueue* queue = nullptr;
        const uint32_t n = tail_ - head_;
        if (n != 0) {
            queue = slots_[head_ & mask_].queue;
            head_ = head_ + 1;
            count_.store(n - 1, std::memory_order_relaxed);
        }
        return queue;
    }

    bool empty() const { return count_.load(std::memory_order_acquire) == 0; }
    uint32_t size() const { return count_.load(std::memory_order_acquire); }
    uint32_t capacity() const { return capacity_.load(std::memory_order_relaxed); }
    // How many entries have been taken out so far; wraps around.
    uint32_t taken() {
        const BiasedLockGuard held(lock_);
        return head_;
    }

    // Keeps the entries in order. False (nothing changed) when more than `entries` are held or memory is
    // short.
    bool resize(uint32_t entries);
    // Takes out every entry of that queue (its VI is being destroyed: spec/states 3).
    void purge(const WorkQueue* queue);

private:
    BiasedLock lock_;
    std::unique_ptr<Entry[]> slots_;
    uint32_t mask_ = 0;
    std::atomic<uint32_t> capacity_{0};  // changed under lock_, read anywhere
    uint32_t head_ = 0;                  // free-running
    uint32_t tail_ = 0;
    std::atomic<uint32_t> count_{0};
};

}  // namespace viaduct
