// SPDX-License-Identifier: BSD-2-Clause
// The end of a tool's output. What cannot be written (a full disk, a closed descriptor) is a problem like any other: a
// tool whose output is not whole does not end with 0.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace viaduct::tools {

// `code`, or 1 in place of 0 when a part of standard output was lost.
inline int finish(const char* tool, int code) {
    const bool lost_before = std::ferror(stdout) != 0;
    const bool lost_now = std::fflush(stdout) != 0;
    if (!lost_before && !lost_now) return code;
    std::fprintf(stderr, "%s: standard output cannot be written: %s\n", tool,
                 lost_now ? std::strerror(errno) : "a part of it was lost");
    return code == 0 ? 1 : code;
}

}  // namespace viaduct::tools
