// SPDX-License-Identifier: BSD-2-Clause
// The key that authenticates frames between the hosts of a network, from a file that only its owner may read.
#pragma once

#include <string>

#include "providers/wire/siphash.hpp"

namespace viaduct::packet {

// `section` of the settings names the file. False: *why and *cure say why; the content of the file is never
// shown.
bool read_key_file(const char* section, const std::string& path, wire::Key* out, std::string* why, std::string* cure);

}  // namespace viaduct::packet
