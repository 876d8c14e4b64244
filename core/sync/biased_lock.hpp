// SPDX-License-Identifier: BSD-2-Clause
// The lock of every work queue and completion queue. It is biased to the first thread that takes it: that
// thread locks and unlocks with plain stores (about one nanosecond, no locked instruction). Another thread
// that comes revokes the bias with a process-wide barrier; from then on it is an ordinary futex lock, until
// the first thread has taken it many times in a row and has its bias back. So single-threaded programs pay
// nothing for thread safety, helper threads may come along rarely, and threaded programs pay one uncontended
// compare-and-swap. Not recursive.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "core/sync/asymmetric_barrier.hpp"
#include "core/sync/atomic_equals.hpp"

namespace viaduct {

// The calling thread. It must mean the same in every copy of this code in the process (libvipl and each provider
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

    // The owner's way alone, for hot paths that keep their general form in another function: true, and inside
    // until leave(), when the lock is biased to this thread. False: nothing has happened; use lock().
    bool try_enter() {
#ifndef VIADUCT_TSAN  // the sanitizer cannot see through membarrier: there every lock is an ordinary one
        const uintptr_t me = thread_identity();
        return atomic_equals(owner_, me) && enter(me);
#else
        return false;
#endif
    }
    void leave() { held_.store(0, std::memory_order_release); }

    void lock() {
        if (try_enter()) [[likely]]
            return;
        lock_slow();
    }

    // Never waits for the thread inside, so it may be used against the lock order.
    bool try_lock() {
#ifndef VIADUCT_TSAN
        const uintptr_t me = thread_identity();
        if (owner_.load(std::memory_order_relaxed) == me) [[likely]] {
            if (held_.load(std::memory_order_relaxed) != 0) return false;  // by this very thread
            if (enter(me)) [[likely]]
                return true;
        }
#endif
        return try_lock_slow();
    }

    void unlock() {
#ifndef VIADUCT_TSAN
        // Only the thread in bias_ ever writes held_; no holder of word_ is inside while held_ is set.
        if (held_.load(std::memory_order_relaxed) != 0 && bias_is_mine()) [[likely]] {
            held_.store(0, std::memory_order_release);
            return;
        }
#endif
        unlock_slow();
    }

    // Back to the state of a new lock, for an object that is used again. No thread may hold it or wait for it.
    void reset() {
        owner_.store(kUnset, std::memory_order_relaxed);
        held_.store(0, std::memory_order_relaxed);
        bias_.store(kUnset, std::memory_order_relaxed);
        row_ = 0;
        word_.store(0, std::memory_order_release);
    }

private:
    // owner_ is one of these, or the thread the lock is biased to. All changes but the very first bias are
    // made while holding word_.
    static constexpr uintptr_t kUnset = 0;                  // no thread has used it yet
    static constexpr uintptr_t kRevoked = UINTPTR_MAX;      // an ordinary lock
    static constexpr uintptr_t kLeaving = UINTPTR_MAX - 1;  // revoked, but the former owner may be inside

    // The owner's way in. Together with the barrier in revoke(): either the owner sees that it has lost the
    // bias and steps back, or the revoker sees held_. A bias is only given where light barriers are free of
    // fences (take_first_bias), so that this one need not ask.
    bool enter(uintptr_t me) {
        held_.store(1, std::memory_order_relaxed);
        free_barrier();
        // Acquire: what others did under word_ before the bias came back to us was seen when we took word_;
        // this keeps our own section from starting before the check.
        if (atomic_equals_acquire(owner_, me)) [[likely]]
            return true;
        held_.store(0, std::memory_order_release);
        return false;
    }

    bool bias_is_mine() const { return bias_.load(std::memory_order_relaxed) == thread_identity(); }
    bool take_first_bias();
    void lock_slow();
    bool try_lock_slow();
    void unlock_slow();
    void revoke();
    void note_holder();

    std::atomic<uintptr_t> owner_{kUnset};
    std::atomic<uint32_t> held_{0};        // the biased thread is inside
    std::atomic<uint32_t> word_{0};        // 0 free, 1 locked, 2 locked and a thread sleeps
    std::atomic<uintptr_t> bias_{kUnset};  // the first owner: the only thread that is ever biased to
    uint32_t row_ = 0;                     // times it took word_ with no other thread in between; under word_
};

// Inside a lock for a scope, remembering how it came in: cheaper than lock() and unlock() on hot paths.
class BiasedLockGuard {
public:
    explicit BiasedLockGuard(BiasedLock& lock) : lock_(lock), as_owner_(lock.try_enter()) {
        if (!as_owner_) [[unlikely]]
            lock_.lock();
    }
    ~BiasedLockGuard() {
        if (as_owner_) [[likely]] {
            lock_.leave();
        } else {
            lock_.unlock();
        }
    }
    BiasedLockGuard(const BiasedLockGuard&) = delete;
    BiasedLockGuard& operator=(const BiasedLockGuard&) = delete;

private:
    BiasedLock& lock_;
    const bool as_owner_;
};

}  // namespace viaduct
