// SPDX-License-Identifier: BSD-2-Clause
// How many processors the calling thread may use (spec/performance R8). Any thread, no lock; for each thread at most
// one sched_getaffinity in 100 ms, for the process about one read of the cgroup files in 10 s.
#pragma once

namespace viaduct {

// Its affinity, which a program may change at any time, cut by the CPU quota of its control groups (cpu_quota.hpp),
// which hardly changes. At least 1.
int allowed_processor_count();

}  // namespace viaduct
