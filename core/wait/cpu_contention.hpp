// SPDX-License-Identifier: BSD-2-Clause
// CPU contention: who else runs on our processors. Those who wait give the processor back within microseconds, so
// giving way to them is the quickest way to a message. Somebody who computes keeps it for a time slice, milliseconds,
// and is given another one at each yield: beside such company a thread that waits has to sleep, and is then owed the
// processor when it is woken.
// Bound: two yields in a row that last a time slice each, the kernel's to give, before it is believed; while it is, for
// 25 ms at first and 1.6 s at most, a message costs the wake-up of a sleeper, and every belief ends by one more yield.
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

    // Gives way, and learns from how long that took. So many of those in a row that took long make contention.
    void give_way(unsigned long_ones);
    // Somebody computes, as far as we know. False once in a while, so that a yield finds out whether that is still so.
    bool computes();

    // Gives way without learning from now on, and nobody computes. Before anybody waits.
    void switch_off() { off_ = true; }

private:
    Clock clock_;
    Yield yield_;
    bool off_ = false;
    std::atomic<unsigned> long_in_row_{0};
    std::atomic<int64_t> until_{0};  // believed without asking; 0: nobody computes
    std::atomic<int64_t> belief_ns_{0};
};

}  // namespace viaduct
