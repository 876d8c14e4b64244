// SPDX-License-Identifier: BSD-2-Clause
// CPU contention: which other threads run on our processors. A waiting thread gives the processor back within
// microseconds, so yielding to it is the quickest way to a message. A computing thread keeps it for a time slice,
// milliseconds, and is given another one at each yield: beside it a thread that waits has to sleep, and then gets the
// processor as soon as it is woken.
// Bound: two yields in a row that last a time slice each, as long as the kernel makes it, show contention; while it
// counts, for 25 ms at first and 1.6 s at most, a message costs the wake-up of a sleeper, and it ends by one more
// yield.
#pragma once

#include <atomic>
#include <cstdint>

namespace viaduct {

// Any thread may ask and tell; what two tell at once may be lost, and is found out again.
class CpuContention {
public:
    using Clock = int64_t (*)();  // ns
    using Yield = void (*)();
    CpuContention(Clock clock, Yield yield) : clock_(clock), yield_(yield) {}

    // Yields, and measures how long that took. So many of those in a row that took long make contention.
    void give_way(unsigned long_ones);
    // Another thread computes, as far as was measured. False once in a while, so that a yield finds out whether that
    // is still so.
    bool computes();

    // From now on yields without measuring, and no contention is reported. Call it before any thread waits.
    void switch_off() { off_ = true; }

private:
    Clock clock_;
    Yield yield_;
    bool off_ = false;
    std::atomic<unsigned> long_in_row_{0};
    std::atomic<int64_t> until_{0};  // valid without a probe; 0: no contention
    std::atomic<int64_t> valid_for_ns_{0};
};

}  // namespace viaduct
