// SPDX-License-Identifier: BSD-2-Clause
// Text that another process has given, made fit for terminals and logs.
#pragma once

#include <string>
#include <string_view>

namespace viaduct {

// The text with a question mark for every byte that is not printable ASCII: no line ends, no escape
// sequences.
inline std::string printable(std::string_view text) {
    std::string shown(text);
    for (char& c : shown)
        if (c < ' ' || c > '~') c = '?';
    return shown;
}

}  // namespace viaduct
