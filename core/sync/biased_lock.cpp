// SPDX-License-Identifier: BSD-2-Clause
// The ways through a biased lock that are not the owner's: the first bias, revoking it, the ordinary lock,
// and giving the bias back.
#include "core/sync/biased_lock.hpp"

#include <sched.h>

#include "core/sync/futex.hpp"
#include "core/sync/pause.hpp"

namespace viaduct {

namespace {

// About two microseconds: longer than any section of ours that does not copy much.
constexpr int kSpinsBeforeSleep = 100;

// Yields after which a revoker sleeps: an owner of lower priority may need this very processor.
constexpr int kYieldsBeforeSleep = 100;
constexpr int64_t kOwnerNap = 50'000;  // ns

// A revocation costs about as much as this many uncontended passes through the ordinary lock cost more than
// through the biased one: so giving the bias back can at worst double what a lock costs.
constexpr uint32_t kRowForBias = 256;

}  // namespace

// The very first thread becomes the owner without holding word_; the holder of word_ at that moment
// overwrites owner_ next (revoke), and the barrier there makes one of the two see the other. False: not ours.
bool BiasedLock::take_first_bias() {
    uintptr_t unset = kUnset;
    // Where owners need real fences a bias is worth nothing.
    if (!asymmetric_barrier_available() || owner_.load(std::memory_order_relaxed) != kUnset) return false;
    const uintptr_t me = thread_identity();
    if (!owner_.compare_exchange_strong(unset, me, std::memory_order_acq_rel, std::memory_order_relaxed))
        return false;
    bias_.store(me, std::memory_order_relaxed);
    return enter(me);
}

// Called holding word_. Afterwards no thread is inside by bias alone, unless owner_ is kLeaving and held_ is
// set.
void BiasedLock::revoke() {
    owner_.store(kLeaving, std::memory_order_relaxed);
    heavy_barrier_process();  // after it, the former owner either sees the revocation or we see held_
}

// Called holding word_ and nothing else inside: counts, and gives the first owner its bias back. The caller
// is then inside as owner and no longer holds word_.
void BiasedLock::note_holder() {
    const uintptr_t me = thread_identity();
    // Only to the same thread as ever: a late step of another one through enter() would clear held_ under the
    // feet of the new owner.
    if (bias_.load(std::memory_order_relaxed) != me) {
        row_ = 0;
        return;
    }
    if (++row_ < kRowForBias) return;
    row_ = 0;
    held_.store(1, std::memory_order_relaxed);
    owner_.store(me, std::memory_order_relaxed);
    unlock_slow();  // publishes both to the next holder of word_, which will revoke and wait for held_
}

void BiasedLock::lock_slow() {
#ifndef VIADUCT_TSAN
    if (take_first_bias()) return;
#endif
    bool locked = false;
    for (int spins = 0; spins < kSpinsBeforeSleep && !locked; ++spins) {
        uint32_t free_word = 0;
        locked =
            word_.compare_exchange_weak(free_word, 1, std::memory_order_acquire, std::memory_order_relaxed);
        if (!locked) cpu_pause();
    }
    while (!locked) {
        locked = word_.exchange(2, std::memory_order_acquire) == 0;
        if (!locked) futex_wait(word_, 2, -1, false);
    }
#ifndef VIADUCT_TSAN
    if (owner_.load(std::memory_order_relaxed) != kRevoked) {
        if (owner_.load(std::memory_order_relaxed) != kLeaving) revoke();
        for (int waits = 0; held_.load(std::memory_order_acquire) != 0; ++waits) {
            if (waits < kSpinsBeforeSleep) {
                cpu_pause();
            } else if (waits < kSpinsBeforeSleep + kYieldsBeforeSleep) {
                ::sched_yield();
            } else {
                futex_wait(held_, 1, kOwnerNap, false);  // no thread wakes us; nanosleep is a cancellation point
            }
        }
        owner_.store(kRevoked, std::memory_order_relaxed);
    }
    note_holder();
#endif
}

bool BiasedLock::try_lock_slow() {
#ifndef VIADUCT_TSAN
    if (take_first_bias()) return true;
#endif
    uint32_t free_word = 0;
    if (!word_.compare_exchange_strong(free_word, 1, std::memory_order_acquire, std::memory_order_relaxed))
        return false;
#ifndef VIADUCT_TSAN
    if (owner_.load(std::memory_order_relaxed) != kRevoked) {
        if (owner_.load(std::memory_order_relaxed) != kLeaving) revoke();
        if (held_.load(std::memory_order_acquire) != 0) {
            unlock_slow();  // the owner is inside; the next one to come finds kLeaving and waits or gives up
            return false;
        }
        owner_.store(kRevoked, std::memory_order_relaxed);
    }
    note_holder();
#endif
    return true;
}

void BiasedLock::unlock_slow() {
    if (word_.exchange(0, std::memory_order_release) == 2) futex_wake(word_, 1, false);
}

}  // namespace viaduct
