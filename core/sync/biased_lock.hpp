// SPDX-License-Identifier: BSD-2-Clause
// The lock of every work queue and completion queue. It is biased to the first thread that takes it: that
// thread locks and unlocks with plain stores (about one nanosecond, no locked instruction). The first other
// thread that comes revokes the bias with a process-wide barrier; from then on it is an ordinary futex lock.
// So single-threaded programs pay nothing for thread safety, helper threads may come along rarely, and
// threaded programs pay one uncontended compare-and-swap.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "core/sync/asymmetric_barrier.hpp"

namespace viaduct {

// Who is asking. It must mean the same in every copy of this code in the process (libvipl and each provider
// carry one), so it is the thread pointer and no thread-local variable of ours. A later thread may get the
// pointer of one that has ended and inherits its biases with it; thread creation orders the two.
inline uintptr_t thread_identity() {
#if defined(__x86_64__)
    uintptr_t self;
    asm("mov %%fs:0, %0" : "=r"(self));
    return self;
#elif defined(__aarch64__)
    return reinterpret_cast<uintptr_t>(__builtin_thread_pointer());
#else
    return static_cast<uintptr_t>(::pthread_self());
#endif
}

class BiasedLock {
public:
    BiasedLock() = default;
    BiasedLock(const BiasedLock&) = delete;
    BiasedLock& operator=(const BiasedLock&) = delete;

    void lock() {
#ifndef VIADUCT_TSAN  // the sanitizer cannot see through membarrier: there every lock is an ordinary one
        const uintptr_t me = thread_identity();
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
        const uintptr_t me = thread_identity();
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
    static constexpr uintptr_t kUnset = 0;              // no thread has used it yet
    static constexpr uintptr_t kRevoked = UINTPTR_MAX;  // an ordinary lock from now on

    bool owner_held_by_me() const { return held_by_.load(std::memory_order_relaxed) == thread_identity(); }
    void lock_slow();
    bool try_lock_slow();
    void unlock_slow();
    void revoke();

    std::atomic<uintptr_t> owner_{kUnset};  // the thread it is biased to
    std::atomic<uint32_t> held_{0};         // the biased thread is inside
    std::atomic<uintptr_t> held_by_{0};     // the first owner; written once, by it
    std::atomic<uint32_t> word_{0};         // 0 free, 1 locked, 2 locked and somebody sleeps
};

}  // namespace viaduct
