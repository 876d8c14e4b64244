// SPDX-License-Identifier: BSD-2-Clause
// How a thread of the engine waits between two passes of progress() that moved nothing: the steps of the wait policy
// (core/wait/wait_policy.hpp), done with what the engine has to sleep on.
#pragma once

#include "core/wait/cpu_contention.hpp"
#include "core/wait/poll_delay.hpp"
#include "core/wait/spin_limit.hpp"
#include "core/wait/wait_policy.hpp"

namespace viaduct::mpi {

// The process's, learnt by all its waits.
extern SpinLimit spin_limit;
extern CpuContention cpu_contention;

// So many yields in a row must take long before the rank assumes that another process computes on its processor. A
// single long yield may have met a rank that was still in its set-up, and a wrong assumption makes each message pay a
// wake-up for some hundredths of a second.
constexpr unsigned kLongYields = 2;

// One wait, or the waits of a program that asks again and again.
class ProgressWait {
public:
    void moved() {
        if (policy_.idle() != 0) was_rewarded();
    }
    // Between two passes that moved nothing: spins, gives way or sleeps. `for_one_here`: the one that is waited for is
    // on our processor and cannot run until we give way. True when the wait has become long.
    bool wait_a_little(bool for_one_here = false);
    // The same for a program that asks again and again by itself (MPI_Test, MPI_Iprobe): never sleeps. How often it has
    // asked since something moved.
    unsigned look_again();

private:
    void was_rewarded();

    WaitPolicy policy_{spin_limit, cpu_contention};
};

// CMPI_WAIT_LEARNING: off, all waits are as before the first one has learnt anything, and none is tried another way.
// Before the first wait.
void switch_wait_learning(bool on);

}  // namespace viaduct::mpi
