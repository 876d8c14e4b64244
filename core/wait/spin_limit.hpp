// SPDX-License-Identifier: BSD-2-Clause
// Spin limit: how many polls a wait makes before it yields, where there are more waiting threads than processors. If
// the awaited process runs at this moment, polling on is faster than a yield, and both processes go on for a whole time
// slice without the kernel. If it has no processor, as in a collective call of all ranks, each poll takes processor
// time that it needs. Which case holds is learnt from the waits: from the number of polls after which they ended.
// Bound: a wait yields after 8 to 64 polls of some tens of nanoseconds each. A wait that makes the most polls and finds
// nothing, as every 32nd does at the lowest limit, yields two to four microseconds later than it could.
#pragma once

#include <algorithm>
#include <atomic>

namespace viaduct {

// Any thread may ask and tell; what two tell at once may be lost, and is found out again.
class SpinLimit {
public:
    // A pass costs some tens of nanoseconds. The most bridge a message on its way, and are short against a
    // time slice; the least are what a message needs that has left already.
    static constexpr unsigned kMost = 64;
    static constexpr unsigned kLeast = 8;
    // After so many expired waits with the least limit one looks for long again.
    static constexpr unsigned kBetweenTrials = 32;

    // Passes before giving way.
    unsigned limit() const { return limit_.load(std::memory_order_relaxed); }
    // What was waited for came after so many passes.
    void rewarded(unsigned passes) {
        expired_in_a_row_.store(0, std::memory_order_relaxed);
        const unsigned wanted = std::min(kMost, 4 * passes);
        if (wanted > limit()) limit_.store(wanted, std::memory_order_relaxed);
    }
    // All passes went by, and nothing had come.
    void expired() {
        if (off_) return;
        unsigned next = std::max(kLeast, limit() / 2);
        unsigned times = expired_in_a_row_.load(std::memory_order_relaxed) + 1;
        if (times == kBetweenTrials) {
            times = 0;
            next = kMost;
        }
        expired_in_a_row_.store(times, std::memory_order_relaxed);
        limit_.store(next, std::memory_order_relaxed);
    }

    // Always the most from now on. Call it before any thread waits.
    void switch_off() {
        off_ = true;
        limit_.store(kMost, std::memory_order_relaxed);
    }

private:
    std::atomic<unsigned> limit_{kMost};
    std::atomic<unsigned> expired_in_a_row_{0};
    bool off_ = false;
};

}  // namespace viaduct
