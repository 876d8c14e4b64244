// SPDX-License-Identifier: BSD-2-Clause
#include "providers/paramnet/own_memory.hpp"

#include <cstring>

namespace viaduct::paramnet {

bool write_if_accessible(std::byte* to, const std::byte* from, size_t n) {
    if (!can_write(to, n)) return false;
    copy_rising(to, from, n);
    return true;
}

bool read_if_accessible(std::byte* to, const std::byte* from, size_t n) {
    if (!can_read(from, n)) return false;
    std::memcpy(to, from, n);
    return true;
}

bool all_readable(SegmentCursor cursor, uint32_t n) {
    for (uint32_t piece = 0; n != 0; n -= piece) {
        const std::byte* at = cursor.next(n, &piece);
        if (at == nullptr || !can_read(at, piece)) return false;
    }
    return true;
}

bool all_writable(SegmentCursor cursor, uint32_t n) {
    for (uint32_t piece = 0; n != 0; n -= piece) {
        std::byte* at = cursor.next(n, &piece);
        if (at == nullptr || !can_write(at, piece)) return false;
    }
    return true;
}

uint32_t scatter_accessible(SegmentCursor& cursor, const std::byte* from, uint32_t n) {
    uint32_t done = 0, piece = 0;
    while (done < n) {
        std::byte* to = cursor.next(n - done, &piece);
        if (to == nullptr || !write_if_accessible(to, from + done, piece)) break;
        done += piece;
    }
    return done;
}

uint32_t gather_accessible(SegmentCursor& cursor, std::byte* to, uint32_t n) {
    uint32_t done = 0, piece = 0;
    while (done < n) {
        const std::byte* from = cursor.next(n - done, &piece);
        if (from == nullptr || !read_if_accessible(to + done, from, piece)) break;
        done += piece;
    }
    return done;
}

}  // namespace viaduct::paramnet
