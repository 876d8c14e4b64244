// SPDX-License-Identifier: BSD-2-Clause
// Numbers on the wire are big-endian and lie at any alignment. Used by everything that reads or writes a
// frame.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "viaduct/types.hpp"

namespace viaduct::wire {

namespace detail {

inline uint16_t swap(uint16_t v) { return __builtin_bswap16(v); }
inline uint32_t swap(uint32_t v) { return __builtin_bswap32(v); }
inline uint64_t swap(uint64_t v) { return __builtin_bswap64(v); }

template <class Number>
Number big_endian(Number v) {
    if constexpr (std::endian::native == std::endian::little) {
        return swap(v);
    } else {
        return v;
    }
}

template <class Number>
Number load(const std::byte* from) {
    Number v;
    std::memcpy(&v, from, sizeof v);
    return big_endian(v);
}

template <class Number>
void store(std::byte* to, Number v) {
    v = big_endian(v);
    std::memcpy(to, &v, sizeof v);
}

}  // namespace detail

inline uint8_t load8(const std::byte* from) { return static_cast<uint8_t>(*from); }
inline uint16_t load16(const std::byte* from) { return detail::load<uint16_t>(from); }
inline uint32_t load32(const std::byte* from) { return detail::load<uint32_t>(from); }
inline uint64_t load64(const std::byte* from) { return detail::load<uint64_t>(from); }

inline void store8(std::byte* to, uint8_t v) { *to = static_cast<std::byte>(v); }
inline void store16(std::byte* to, uint16_t v) { detail::store(to, v); }
inline void store32(std::byte* to, uint32_t v) { detail::store(to, v); }
inline void store64(std::byte* to, uint64_t v) { detail::store(to, v); }

// As ==, in two comparisons instead of six: the sender of every frame is compared.
inline bool is_same(const NicAddress& a, const NicAddress& b) {
    static_assert(sizeof a.bytes == 6);
    uint32_t a4, b4;
    uint16_t a2, b2;
    std::memcpy(&a4, a.bytes, 4);
    std::memcpy(&b4, b.bytes, 4);
    std::memcpy(&a2, a.bytes + 4, 2);
    std::memcpy(&b2, b.bytes + 4, 2);
    return a4 == b4 && a2 == b2;
}

// As that number lies in a frame.
inline uint64_t on_wire(uint64_t v) { return detail::big_endian(v); }

// Sequence numbers wrap: a comes before b when the shorter way from a to b leads upward.
inline bool before(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b) < 0; }

}  // namespace viaduct::wire
