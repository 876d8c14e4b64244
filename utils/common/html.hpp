// SPDX-License-Identifier: BSD-2-Clause
// Text inside HTML and SVG.
#pragma once

#include <string>

namespace viaduct::tools {

// With the characters that mark up replaced, also in an attribute between double quotes.
std::string escaped(const std::string& text);

}  // namespace viaduct::tools
