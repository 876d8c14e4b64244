// SPDX-License-Identifier: BSD-2-Clause
// The roles the other processes of this suite play.
#pragma once

#include <string>
#include <vector>

#include "child.hpp"

namespace viaduct::conformance {

/// What main() does under --role. Returns the exit code.
int play_role(const std::string& role, const std::vector<std::string>& arguments);

}  // namespace viaduct::conformance
