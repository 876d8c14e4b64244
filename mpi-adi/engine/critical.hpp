// SPDX-License-Identifier: BSD-2-Clause
// The one lock of the engine. Below MPI_THREAD_MULTIPLE it costs a load and a branch that is never taken.
// Recursive, because callbacks of the program (attributes, operators, error handlers) may call MPI again.
// Served in order of arrival: a thread that progresses for ever must not keep the others out. Threads that only wait for
// messages come after those that have something to do, and take the lock as they find it.
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
    // For a thread that found nothing to do: lets the others have the lock; true when there was one.
    static bool give_way();
    // For one that found nothing to do beside somebody who computes: sleeps a little, without the lock.
    static void nap();

private:
    static std::atomic<bool> enabled_;
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
