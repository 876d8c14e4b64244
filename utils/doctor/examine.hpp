// SPDX-License-Identifier: BSD-2-Clause
// --doctor HOST of vipping and vipinfo: everything between this host and that one that can keep two VIA programs apart,
// from both ends, in the order in which one needs the other; the last is a message, as vipping sends it. This host
// alone: utils/vipinfo/doctor.hpp.
#pragma once

#include <string>

#include "utils/common/finding.hpp"

namespace viaduct::doctor {

tools::Findings examine(const std::string& host);

// The examination as that tool prints it; the tool's exit status.
int tell_examination(const char* tool, const std::string& host, bool as_json);

// The system's resolver has an IPv4 address of it.
bool is_known_host(const std::string& name);

}  // namespace viaduct::doctor
