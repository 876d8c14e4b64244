// SPDX-License-Identifier: BSD-2-Clause
// How much processor time the control group of this process may use. In a container of two processors' worth
// on a machine of many, the mask of allowed processors shows them all; a process that spins there is stopped by the
// system when the ration is used up, in the middle of whatever it does.
#pragma once

#include <string>
#include <string_view>

namespace viaduct {

struct CpuQuota {
    double processors = 0;  // 0: no limit
    std::string group;      // names the group that is limited, alike for all processes in it; "": none
};

// The tightest limit on the way from the group of this process to the root, versions 1 and 2. Files are open for
// a moment only, and no thread is cancelled inside.
CpuQuota own_cpu_quota();
// The same for a given text of /proc/self/cgroup and a given place of /sys/fs/cgroup.
CpuQuota cpu_quota_of(std::string_view text, const std::string& root);

}  // namespace viaduct
