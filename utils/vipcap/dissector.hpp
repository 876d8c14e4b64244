// SPDX-License-Identifier: BSD-2-Clause
// The Wireshark dissector (providers/wire/dissector/viaduct.lua) as a part of this program: of one release with it.
#pragma once

#include <string>

namespace viaduct::vipcap {

extern const char* const kDissectorText;

// Puts it where Wireshark looks for what belongs to this user, in place of an older one; the path. Throws ToolError
// where it cannot be written.
std::string install_dissector();

}  // namespace viaduct::vipcap
