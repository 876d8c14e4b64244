// SPDX-License-Identifier: BSD-2-Clause
// Spin limit: how long a wait looks before it gives way, where waiting threads are more than processors. Of two that
// run at this moment the answer is quicker than giving way would be, and both go on for a whole time slice without the
// kernel. Where the awaited process has no processor, as in a collective call of all, each look takes from it
// the time it needs. Which it is the waits themselves tell: by when they ended.
// Bound: a wait gives way after 8 to 64 looks, some tens of nanoseconds each; one that looks longest and finds
// nothing, as every 32nd does at the least limit, gives way two to four microseconds later than it could.
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
    // After so many fruitless waits with the least limit one looks for long again.
    static constexpr unsigned kBetweenTrials = 32;

    // Passes before giving way.
    unsigned limit() const { return limit_.load(std::memory_order_relaxed); }
    // What was waited for came after so many passes.
    void rewarded(unsigned passes) {
        in_vain_.store(0, std::memory_order_relaxed);
        const unsigned wanted = std::min(kMost, 4 * passes);
        if (wanted > limit()) limit_.store(wanted, std::memory_order_relaxed);
    }
    // All passes went by, and nothing had come.
    void in_vain() {
        if (off_) return;
        unsigned next = std::max(kLeast, limit() / 2);
        unsigned times = in_vain_.load(std::memory_order_relaxed) + 1;
        if (times == kBetweenTrials) {
            times = 0;
            next = kMost;
        }
        in_vain_.store(times, std::memory_order_relaxed);
        limit_.store(next, std::memory_order_relaxed);
    }

    // Always the most from now on. Call it before any thread waits.
    void switch_off() {
        off_ = true;
        limit_.store(kMost, std::memory_order_relaxed);
    }

private:
    std::atomic<unsigned> limit_{kMost};
    std::atomic<unsigned> in_vain_{0};
    bool off_ = false;
};

}  // namespace viaduct
