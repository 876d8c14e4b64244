// SPDX-License-Identifier: BSD-2-Clause
// How much processor time the control group of this process may use. A container that may use the time of two
// processors on a machine of many still has all of them in its affinity mask. The kernel stops its processes when the
// quota of a period is used up, at any instruction. So the quota cuts the number of allowed processors, by which waits
// spin or sleep (spec/performance R8; allowed_processors.hpp). Slow path, any thread; no state, no lock.
#pragma once

#include <string>
#include <string_view>

namespace viaduct {

struct CpuQuota {
    double processors = 0;  // 0: no limit
    std::string group;      // identifies the limited group, the same text in all its processes; "": no limit
};

// The smallest limit of this process' group and of all groups above it, in control groups of versions 1 and 2.
// No file stays open. pthread_cancel is held off inside.
CpuQuota own_cpu_quota();
// The same, for tests: `text` in place of /proc/self/cgroup, `root` in place of /sys/fs/cgroup.
CpuQuota cpu_quota_of(std::string_view text, const std::string& root);

}  // namespace viaduct
