// SPDX-License-Identifier: BSD-2-Clause
// Who else runs on our processors. Ranks that wait give the processor back within microseconds, so giving way
// to them is the quickest way to a message. Somebody who computes keeps it for a time slice, milliseconds, and
// is given another one at each yield: beside such company a rank that waits has to sleep, and is then owed the
// processor when it is woken.
#pragma once

#include <atomic>
#include <cstdint>

namespace viaduct::mpi {

// Any thread may ask and tell; what two tell at once may be lost, and is found out again.
class Company {
public:
    using Clock = int64_t (*)();  // ns
    using Yield = void (*)();
    Company(Clock clock, Yield yield) : clock_(clock), yield_(yield) {}

    // Gives way, and learns from how long that took. So many of those in a row that took long make company.
    void give_way(unsigned long_ones);
    // Somebody computes, as far as we know. False once in a while, so that a yield finds out whether that is still so.
    bool computes();

private:
    Clock clock_;
    Yield yield_;
    std::atomic<unsigned> long_in_row_{0};
    std::atomic<int64_t> until_{0};  // believed without asking; 0: nobody computes
    std::atomic<int64_t> belief_ns_{0};
};

extern Company company;

// The shortest time slice the kernel grants to this thread and those it makes: whoever has a short one may run
// as soon as it is woken, instead of after the slice of somebody who computes. Kernels before 6.12 know no
// slices of one thread: nothing is changed there.
void take_short_slice();
// As it was, unless the program has set another one since. A forked child has it back from its beginning.
void give_slice_back();

}  // namespace viaduct::mpi
