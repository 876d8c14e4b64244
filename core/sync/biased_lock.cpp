// SPDX-License-Identifier: BSD-2-Clause
#include "core/sync/biased_lock.hpp"

#include <sched.h>

#include "core/sync/futex.hpp"
#include "core/sync/pause.hpp"

namespace viaduct {

namespace {
constexpr int kSpinsBeforeSleep =
    100;  // about two microseconds: longer than any section of ours that does not copy much
}

void BiasedLock::revoke() {
    const uintptr_t owner = owner_.load(std::memory_order_relaxed);
    if (owner == kRevoked) return;
    owner_.store(kRevoked, std::memory_order_relaxed);
    heavy_barrier_process();  // after it, the former owner either sees the revocation or we see held_
    for (int spins = 0; held_.load(std::memory_order_acquire) != 0; ++spins) {
        if (spins < kSpinsBeforeSleep) {
            cpu_pause();
        } else {
            ::sched_yield();  // the owner is inside and may need this processor to get out
        }
    }
}

void BiasedLock::lock_slow() {
#ifndef VIADUCT_TSAN
    uintptr_t unset = kUnset;
    if (!detail::light_needs_fence && owner_.load(std::memory_order_relaxed) == kUnset) {
        const uintptr_t me = thread_identity();
        if (owner_.compare_exchange_strong(unset, me, std::memory_order_acq_rel)) {
            held_by_.store(me, std::memory_order_relaxed);
            lock();  // now biased to us, unless somebody revokes it in between
            return;
        }
    }
#endif
    uint32_t free_word = 0;
    bool locked = false;
    for (int spins = 0; spins < kSpinsBeforeSleep && !locked; ++spins) {
        free_word = 0;
        locked =
            word_.compare_exchange_weak(free_word, 1, std::memory_order_acquire, std::memory_order_relaxed);
        if (!locked) cpu_pause();
    }
    while (!locked) {
        locked = word_.exchange(2, std::memory_order_acquire) == 0;
        if (!locked) futex_wait(word_, 2, -1, false);
    }
#ifndef VIADUCT_TSAN
    if (owner_.load(std::memory_order_relaxed) != kRevoked) revoke();
#endif
}

bool BiasedLock::try_lock_slow() {
#ifndef VIADUCT_TSAN
    if (owner_.load(std::memory_order_relaxed) == kUnset) {
        lock_slow();  // nobody has ever used it: cannot wait for long
        return true;
    }
#endif
    uint32_t free_word = 0;
    if (!word_.compare_exchange_strong(free_word, 1, std::memory_order_acquire, std::memory_order_relaxed))
        return false;
#ifndef VIADUCT_TSAN
    if (owner_.load(std::memory_order_relaxed) != kRevoked) revoke();
#endif
    return true;
}

void BiasedLock::unlock_slow() {
    if (word_.exchange(0, std::memory_order_release) == 2) futex_wake(word_, 1, false);
}

}  // namespace viaduct
