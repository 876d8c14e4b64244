// SPDX-License-Identifier: BSD-2-Clause
// What vipcap shows, as JSON (utils/schemas/vipcap.schema.json).
#pragma once

#include <string>
#include <vector>

#include "utils/vipcap/connections.hpp"

namespace viaduct::vipcap {

// One document: frames and connections, either of which may be none.
std::string json_of(const std::vector<KeptFrame>&, const std::vector<Connection>&);

}  // namespace viaduct::vipcap
