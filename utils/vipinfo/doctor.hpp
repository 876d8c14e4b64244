// SPDX-License-Identifier: BSD-2-Clause
// vipinfo --doctor without a host: checks of this host (kernel, limits, permissions, agent, NICs). Each finding says
// what to change (vipinfo(1)). Connects to the agent and opens a NIC. The way between two hosts:
// utils/doctor/examine.hpp.
#pragma once

#include <string>
#include <vector>

#include "utils/common/finding.hpp"
#include "utils/common/inventory.hpp"

namespace viaduct::vipinfo {

// Looks at kernel, limits, permissions and the inventory; then sends one message through the default NIC (or
// `device`).
std::vector<tools::Finding> check_host(const tools::Inventory&, const std::string& device);

// The last of the checks, in try_message.cpp: one message between two VIs of this process.
tools::Finding try_message(const std::string& device);

}  // namespace viaduct::vipinfo
