// SPDX-License-Identifier: BSD-2-Clause
// DPDK's environment: started once in a process, when its first port is opened, on a thread of its own, because it
// changes the affinity of the thread that starts it. Its messages go into our log.
#pragma once

#include <string>

namespace viaduct::acenic {

// With the channel between processes, if a driver needs it: that is decided by the first call. False: it
// cannot be had; *why and *cure say so for people.
bool start_eal(bool channel, std::string* why, std::string* cure);

// The last line that DPDK has written since clear_last_dpdk_line(), for the text of a failure: " (DPDK says: ...)".
// Empty: DPDK has written none.
void clear_last_dpdk_line();
std::string last_dpdk_line();

// Debian's package of a part of the DPDK that this is built with: "eal" is in "librte-eal23" or a later one.
std::string dpdk_package(const char* part);

}  // namespace viaduct::acenic
