// SPDX-License-Identifier: BSD-2-Clause
// How to wait without being rude: spin with pauses, yield, then sleep; and yield at once where more threads
// want to run than there are processors (spec/performance R4 and R8). Any
// thread; never on the way of a message that is there already.
#pragma once

#include <atomic>
#include <cstdint>

namespace viaduct {

// Processors this thread may use: its affinity, cut by the CPU quota of its control groups. At least 1.
int allowed_processors();

// True when others want the processors we spin on: recent yields have let them run.
bool crowded();

// Gives way, and learns from how long that took whether somebody else ran.
void yield_processor();

// For polling loops, once in a while (every few microseconds): gives way when crowded, else seldom, to notice
// that it has become so.
void between_polls();

// As between_polls() found it last: one load, for polling loops between two rounds.
inline std::atomic<bool> crowd_hint{false};

// For a poll in vain while crowd_hint: gives way, and now and then looks whether that is still needed.
void give_way();

// One wait that may end in sleep. `if (ready()) ...; else if (!spin.step()) sleep`.
class SpinWait {
public:
    // Spins for about `spin_ns` when nobody else wants the processor; 0: sleep at once.
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
