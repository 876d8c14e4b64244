// SPDX-License-Identifier: BSD-2-Clause
// Text that another process has given, made fit for terminals and logs.
#pragma once

#include <cstddef>
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

// The same without memory: cut to fit. No text at all is an empty one.
template <size_t N>
void copy_printable(const char* text, char (&to)[N]) {
    size_t n = 0;
    for (; text != nullptr && n + 1 < N && text[n] != '\0'; ++n) to[n] = text[n] < ' ' || text[n] > '~' ? '?' : text[n];
    to[n] = '\0';
}

}  // namespace viaduct
