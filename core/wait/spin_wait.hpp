// SPDX-License-Identifier: BSD-2-Clause
// One wait of VIPL that may end in sleep: spin with pauses, yield, then sleep; and yield at once where more threads
// are runnable than there are processors (spec/performance R4 and R8). Any thread; never on the way of a message that
// is there already. Off: [vipl] spin_us = 0.
// Bound: between two looks lie one pause, or every 32nd time a yield.
#pragma once

#include <cstdint>

namespace viaduct {

// `if (ready()) ...; else if (!spin.step()) sleep`.
class SpinWait {
public:
    // Spins for about `spin_ns` when no other thread needs the processor; 0: sleep at once.
    explicit SpinWait(int64_t spin_ns) : spin_ns_(spin_ns) {}

    // To be called between two looks at the condition; false: time to sleep.
    bool step();

private:
    int64_t spin_ns_;
    int64_t began_ = 0;
    uint32_t looks_ = 0;
    uint32_t yields_ = 0;
    bool crowded_ = false;  // as last asked
};

}  // namespace viaduct
