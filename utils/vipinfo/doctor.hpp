// SPDX-License-Identifier: BSD-2-Clause
// vipinfo --doctor: everything outside a VIA program that can stop it or slow it down, looked at one by one,
// each with its cure.
#pragma once

#include <string>
#include <vector>

#include "utils/vipinfo/inventory.hpp"

namespace viaduct::vipinfo {

enum class Verdict { ok, note, problem };

struct Finding {
    Verdict verdict = Verdict::ok;
    std::string subject;
    std::string finding;
    std::string cure;  // for notes and problems
};

// Looks at kernel, limits, permissions and the inventory; then sends one message through the default NIC (or
// `device`).
std::vector<Finding> examine(const Inventory&, const std::string& device);

// The last of the checks, in its own file: one message between two VIs of this process.
Finding try_message(const std::string& device);

}  // namespace viaduct::vipinfo
