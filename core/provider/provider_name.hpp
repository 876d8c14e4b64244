// SPDX-License-Identifier: BSD-2-Clause
// Which provider the name of a NIC means. A pure function: the agent, the library and the tools give the same answer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace viaduct {

// The one of `providers` whose NIC such a name means, there or not: "PROVIDER:WHICH", "PROVIDERn", also behind "/dev/"
// and before "/". Empty: the name is of none of them.
std::string_view provider_named_by(std::string_view name, const std::vector<std::string>& providers);

}  // namespace viaduct
