// SPDX-License-Identifier: BSD-2-Clause
// The time the engine tells the wire protocol: CLOCK_MONOTONIC, read again only when the processor's counter
// says that some of it has passed. So it is up to four microseconds behind, where the protocol's shortest
// time is five and its timeouts are milliseconds, and costs a few nanoseconds. One thread at a time: the
// engine's lock.
#pragma once

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include <cstdint>

#include "core/clock/clock.hpp"

namespace viaduct::packet {

class EngineClock {
public:
    // Never less than before.
    int64_t now() {
#if defined(__x86_64__)
        const uint64_t ticks = __rdtsc();
        if (ticks - read_at_ < kTicks)
            return now_;  // also where another processor's counter differs: a huge number
        read_at_ = ticks;
#endif
        return now_ = now_ns();
    }

private:
    static constexpr uint64_t kTicks = 4096;  // of 1 to 5 GHz
    uint64_t read_at_ = 0;
    int64_t now_ = 0;
};

}  // namespace viaduct::packet
