// SPDX-License-Identifier: BSD-2-Clause
// Records processes that run already, until they end or the user has enough.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace viaduct::viptrace {

// How the record of a process came about; see man/viptrace.1.md for what is printed. Exit status of the tool.
int attach(const std::string& folder, uint64_t events, double seconds, const std::vector<pid_t>& pids);

}  // namespace viaduct::viptrace
