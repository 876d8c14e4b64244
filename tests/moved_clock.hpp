// SPDX-License-Identifier: BSD-2-Clause
// A clock that the test moves, for code that asks now_ns(). CLOCK_MONOTONIC of the thread that makes the object stands
// still until move(). Other threads have the system's clock, and so have the kernel's timeouts.
#pragma once

#include <chrono>
#include <cstdint>

// Moves the clock of the calling thread, which goes on from there. Objects that the test loads find it by name.
extern "C" void viaduct_test_move_clock(int64_t ns);

namespace viaduct::tests {

class MovedClock {
public:
    MovedClock();
    ~MovedClock();
    MovedClock(const MovedClock&) = delete;
    MovedClock& operator=(const MovedClock&) = delete;
    int64_t now() const;
    void move(std::chrono::nanoseconds by);
};

}  // namespace viaduct::tests
