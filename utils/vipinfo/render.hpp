// SPDX-License-Identifier: BSD-2-Clause
// The same facts as text for people and as JSON for programs. Each function returns what main prints.
#pragma once

#include <string>
#include <vector>

#include "utils/vipinfo/doctor.hpp"
#include "utils/common/inventory.hpp"

namespace viaduct::vipinfo {

struct View {
    bool attributes = false;  // every attribute of every NIC
    bool providers = false;
    bool settings = false;
    bool links = false;
    bool waiters = false;
};

std::string text(const tools::Inventory&, const View&);
std::string json(const tools::Inventory&, const View&);

std::string json(const std::vector<tools::Finding>&);

std::string text_of_nic(const NicInfo&, bool attributes, bool is_default);
// `note`: why it is opened though nothing is known of the name; empty: it is known.
std::string json_of_nic(const std::string& name, const NicInfo&, const std::string& note);
std::string json_of_failure(const std::string& name, const std::string& why);

}  // namespace viaduct::vipinfo
