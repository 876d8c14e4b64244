// SPDX-License-Identifier: BSD-2-Clause
// A mutex that a fork waits for, so that the child finds what it guards whole. A plain one that another
// thread holds at the fork is never given back in the child: a thread that needs it there waits for ever. hold(),
// let_go() and reset() are for the handlers of pthread_atfork(3). Where a fork did not wait (_Fork() runs no
// handlers), reset() tells whether a thread was inside.
#pragma once

#include <sched.h>

#include <atomic>
#include <mutex>
#include <new>

#include "core/sync/biased_lock.hpp"
#include "core/sync/futex.hpp"

namespace viaduct {

class ForkGate {
public:
    void lock() {
        mutex_.lock();
        inside_.store(thread_identity(), std::memory_order_relaxed);
    }
    void unlock() {
        inside_.store(0, std::memory_order_relaxed);
        mutex_.unlock();
    }

    // Before the fork, on its thread. Not when that thread is inside: it forks in the middle, from a signal
    // handler or a constructor of a library that is being loaded. And not for ever: the thread inside may need a
    // lock that a handler before ours has taken.
    void hold() {
        if (inside_.load(std::memory_order_relaxed) == thread_identity()) return;
        for (int tries = 0; !mutex_.try_lock(); ++tries) {
            if (tries == kYields + kNaps) return;
            if (tries < kYields) {
                ::sched_yield();
            } else {
                futex_wait(never_woken_, 0, kNap, false);  // nanosleep is a cancellation point
            }
        }
        inside_.store(thread_identity(), std::memory_order_relaxed);
        held_ = true;
    }
    // After it, in the parent.
    void let_go() {
        if (!held_) return;
        held_ = false;
        unlock();
    }
    // In the child, which has this one thread. False: another thread was inside, and what is guarded may be
    // half changed.
    bool reset() {
        const uintptr_t inside = inside_.load(std::memory_order_relaxed);
        const bool whole = inside == 0 || inside == thread_identity();
        held_ = false;
        inside_.store(0, std::memory_order_relaxed);
        new (&mutex_) std::mutex;
        return whole;
    }

private:
    static constexpr int kYields = 100, kNaps = 3000;
    static constexpr int64_t kNap = 1'000'000;

    std::mutex mutex_;
    std::atomic<uint32_t> never_woken_{0};   // no thread is woken by it
    std::atomic<uintptr_t> inside_{0};  // the thread that holds the mutex
    bool held_ = false;                 // for a fork; under the mutex
};

}  // namespace viaduct
