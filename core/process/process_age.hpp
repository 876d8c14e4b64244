// SPDX-License-Identifier: BSD-2-Clause
// Process numbers are reused. This says whether a number that was known at some moment still means the same process.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace viaduct {

// Now, in the unit in which the kernel tells when a process has started: clock ticks since boot (100 a second). It is
// the same in all time namespaces.
uint64_t boot_ticks();

// When the process with that number in our PID namespace has started; 0: it has ended, or /proc does not show it.
uint64_t started_at(pid_t number);

// True: the process of that number which lived at `moment` (boot_ticks()) has ended: the number is free, or is that
// of a process which has started since. A process that its parent has not waited for yet counts as living. Where /proc
// does not show it, by the number alone. Two system calls or more: not for hot paths.
bool has_ended_since(pid_t number, uint64_t moment);

}  // namespace viaduct
