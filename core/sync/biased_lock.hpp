// SPDX-License-Identifier: BSD-2-Clause
// The lock of every work queue and completion queue. It is biased to the first thread that takes it: that
// thread locks and unlocks with plain stores (about one nanosecond, no locked instruction). The first other
// thread that comes revokes the bias with a process-wide barrier; from then on it is an ordinary futex lock.
// So single-threaded programs pay nothing for thread safety, helper threads may come along rarely, and
// threaded programs pay one uncontended compare-and-swap.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/sync/asymmetric_barrier.hpp"

namespace viaduct {

namespace detail {
extern thread_local uint32_t this_thread_number;  // 0: not yet asked
uint32_t assign_thread_number();                  // never 0; never given out twice in a process' life
}  // namespace detail

inline uint32_t thread_number() {
    const uint32_t n = detail::this_thread_number;
    if (n != 0) [[likely]]
        return n;
    return detail::assign_thread_number();
}

class BiasedLock {
public:
    BiasedLock() = default;
    BiasedLock(const BiasedLock&) = delete;
    BiasedLock& operator=(const BiasedLock&) = delete;

    void lock() {
#ifndef VIADUCT_TSAN  // the sanitizer cannot see through membarrier: there every lock is an ordinary one
        const uint32_t me = thread_number();
        if (owner_.load(std::memory_order_relaxed) == me) [[likely]] {
            held_.store(1, std::memory_order_relaxed);
            light_barrier();
            // Acquire: a revoker that gave the bias back to us published what it did before.
            if (owner_.load(std::memory_order_acquire) == me) [[likely]]
                return;
            held_.store(0, std::memory_order_release);
        }
#endif
        lock_slow();
    }

    bool try_lock() {
#ifndef VIADUCT_TSAN
        const uint32_t me = thread_number();
        if (owner_.load(std::memory_order_relaxed) == me) [[likely]] {
            held_.store(1, std::memory_order_relaxed);
            light_barrier();
            if (owner_.load(std::memory_order_acquire) == me) [[likely]]
                return true;
            held_.store(0, std::memory_order_release);
        }
#endif
        return try_lock_slow();
    }

    void unlock() {
#ifndef VIADUCT_TSAN
        // Only the thread the lock is biased to ever sets held_, and a revoker waits for it to be 0 before it
        // takes word_.
        if (held_.load(std::memory_order_relaxed) != 0 && owner_held_by_me()) [[likely]] {
            held_.store(0, std::memory_order_release);
            return;
        }
#endif
        unlock_slow();
    }

    // Back to the state of a new lock, for an object that is used again. Nobody may hold or want it.
    void reset() {
        owner_.store(kUnset, std::memory_order_relaxed);
        held_.store(0, std::memory_order_relaxed);
        word_.store(0, std::memory_order_release);
    }

private:
    static constexpr uint32_t kUnset = 0;             // no thread has used it yet
    static constexpr uint32_t kRevoked = 0xFFFFFFFF;  // an ordinary lock from now on

    bool owner_held_by_me() const {
        return held_by_.load(std::memory_order_relaxed) == detail::this_thread_number;
    }
    void lock_slow();
    bool try_lock_slow();
    void unlock_slow();
    void revoke();

    std::atomic<uint32_t> owner_{kUnset};  // thread number it is biased to
    std::atomic<uint32_t> held_{0};        // the biased thread is inside
    std::atomic<uint32_t> held_by_{0};     // thread number of the first owner; written once under word_
    std::atomic<uint32_t> word_{0};        // 0 free, 1 locked, 2 locked and somebody sleeps
};

}  // namespace viaduct
