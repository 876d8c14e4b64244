// SPDX-License-Identifier: BSD-2-Clause
#include "providers/paramnet/own_memory.hpp"

#include <cstring>

namespace viaduct::paramnet {

bool write_own_memory(std::byte* to, const std::byte* from, size_t n) {
    if (!is_mapped(to, n)) return false;
    copy_rising(to, from, n);
    return true;
}

bool read_own_memory(std::byte* to, const std::byte* from, size_t n) {
    if (!is_mapped(from, n)) return false;
    std::memcpy(to, from, n);
    return true;
}

uint32_t scatter_where_mapped(SegmentCursor& cursor, const std::byte* from, uint32_t n) {
    uint32_t done = 0, piece = 0;
    while (done < n) {
        std::byte* to = cursor.next(n - done, &piece);
        if (to == nullptr || !write_own_memory(to, from + done, piece)) break;
        done += piece;
    }
    return done;
}

uint32_t gather_where_mapped(SegmentCursor& cursor, std::byte* to, uint32_t n) {
    uint32_t done = 0, piece = 0;
    while (done < n) {
        const std::byte* from = cursor.next(n - done, &piece);
        if (from == nullptr || !read_own_memory(to + done, from, piece)) break;
        done += piece;
    }
    return done;
}

}  // namespace viaduct::paramnet
