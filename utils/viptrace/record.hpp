// SPDX-License-Identifier: BSD-2-Clause
// Starts a program whose libvipl, and that of all programs that it starts, is told by the environment to record.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace viaduct::viptrace {

// For this user only, unless it is there already.
void make_folder(const std::string& folder);

// Runs it and gives its exit status, 128 and the signal that ended it. The folder is made; what is in it stays.
int record(const std::string& folder, uint64_t events, const std::vector<std::string>& command);

}  // namespace viaduct::viptrace
