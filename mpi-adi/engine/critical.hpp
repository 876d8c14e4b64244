// SPDX-License-Identifier: BSD-2-Clause
// The one lock of the engine. Below MPI_THREAD_MULTIPLE it costs a load and a branch that is never taken.
// Recursive, because callbacks of the program (attributes, operators, error handlers) may call MPI again.
// It is never held by a thread that sleeps or gives way. It goes to the thread that has a processor and tries
// first: an order of arrival would hand it to one without a processor, for which all others then wait. A
// thread that has waited for long is served before those that come later.
#pragma once

#include <atomic>
#include <cstdint>

namespace viaduct::mpi {

class EngineLock {
public:
    static void enable() { enabled_.store(true, std::memory_order_relaxed); }
    static bool enabled() { return enabled_.load(std::memory_order_relaxed); }
    static void acquire();
    static void release();
    // For the end of the process, which must come: false when another thread keeps the lock for so long, or when this
    // thread has it, in the middle of a call.
    [[nodiscard]] static bool acquire_within(int64_t nanoseconds);
    // Lets go of it, however often this thread has it, and takes it back.
    static uint32_t let_go();
    static void take_back(uint32_t depth);
    // How many calls of the program have taken the lock; calls inside another one are not counted. Any thread may ask.
    static uint32_t calls() { return calls_.load(std::memory_order_relaxed); }
    // Whether this thread has it.
    static bool is_mine();
    // For a thread that found nothing to do: when other threads wait for the lock, one of them gets it first. False: no
    // thread waited.
    static bool give_turn();
    // The processor to others, without the lock.
    static void yield();
    static void nap(int64_t nanoseconds);

private:
    static std::atomic<bool> enabled_;
    static std::atomic<uint32_t> calls_;  // written with the lock
};

// First line of every MPI function.
class Critical {
public:
    Critical() : locked_(EngineLock::enabled()) {
        if (locked_) [[unlikely]]
            EngineLock::acquire();
    }
    ~Critical() {
        if (locked_) [[unlikely]]
            EngineLock::release();
    }
    Critical(const Critical&) = delete;
    Critical& operator=(const Critical&) = delete;

private:
    const bool locked_;
};

}  // namespace viaduct::mpi
