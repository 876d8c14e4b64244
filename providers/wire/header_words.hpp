// SPDX-License-Identifier: BSD-2-Clause
// A header as it lies in a frame, in five words that are made and written at once. The check lies in the last
// one and counts as zero while it is computed. Used where a frame is sealed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "providers/wire/bytes.hpp"
#include "providers/wire/format.hpp"

namespace viaduct::wire {

inline constexpr uint32_t kLengthAt = 32, kCheckAt = 36;

using HeaderWords = uint64_t[kHeaderBytes / 8];

[[gnu::always_inline]] inline void make_words(const Header& h, HeaderWords& to) {
    const uint64_t kind = uint64_t{kVersion} << 56 | uint64_t{static_cast<uint8_t>(h.kind)} << 48 |
                          uint64_t{h.flags} << 32 | h.destination;
    to[0] = on_wire(kind);
    to[1] = on_wire(uint64_t{h.source} << 32 | h.sequence);
    to[2] = on_wire(uint64_t{h.acknowledge} << 32 | h.credit);
    to[3] = on_wire(h.pass);
    to[4] = on_wire(uint64_t{h.length} << 48);
}

// As they were made, not from memory in larger pieces.
[[gnu::always_inline]] inline void write_words(std::byte* frame, const HeaderWords& words) {
#pragma GCC unroll 8
    for (uint32_t i = 0; i < kHeaderBytes / 8; ++i) std::memcpy(frame + size_t{i} * 8, &words[i], 8);
}

[[gnu::always_inline]] inline void read_words(const std::byte* frame, HeaderWords& to) {
#pragma GCC unroll 8
    for (uint32_t i = 0; i < kHeaderBytes / 8; ++i) std::memcpy(&to[i], frame + size_t{i} * 8, 8);
    to[4] &= ~on_wire(UINT32_MAX);
}

}  // namespace viaduct::wire
