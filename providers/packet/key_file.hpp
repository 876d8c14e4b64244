// SPDX-License-Identifier: BSD-2-Clause
// The key by which all hosts of a network know each other's frames, from a file that only its owner may read.
#pragma once

#include <string>

#include "providers/wire/siphash.hpp"

namespace viaduct::packet {

// `section` of the settings names the file. False: *why and *cure say so for people; what is in the file is said to
// nobody.
bool read_key_file(const char* section, const std::string& path, wire::Key* out, std::string* why, std::string* cure);

}  // namespace viaduct::packet
