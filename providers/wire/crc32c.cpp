// SPDX-License-Identifier: BSD-2-Clause
#include "providers/wire/crc32c.hpp"

#include <array>
#include <cstring>

#include "providers/wire/crc32c_folded.hpp"

namespace viaduct::wire {

namespace {

constexpr uint32_t kPolynomial = 0x82F63B78;

using Tables = std::array<std::array<uint32_t, 256>, 8>;

// tables[k][b]: what byte b does to the checksum when k more bytes follow it.
constexpr Tables make_tables() {
    Tables tables{};
    for (uint32_t b = 0; b < 256; ++b) {
        uint32_t crc = b;
        for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
        tables[0][b] = crc;
    }
    for (size_t k = 1; k < tables.size(); ++k)
        for (uint32_t b = 0; b < 256; ++b)
            tables[k][b] = (tables[k - 1][b] >> 8) ^ tables[0][tables[k - 1][b] & 0xFF];
    return tables;
}

constexpr Tables kTables = make_tables();

#if defined(__x86_64__)

// Three independent streams: the instruction takes three cycles but one starts every cycle. Joining the
// streams needs "the checksum after n zero bytes", here by tables for one fixed n.
constexpr size_t kStream = 336;  // 3 * 336 < 1024: frames of MTU 1500 gain as well

constexpr uint32_t after_zeros(uint32_t crc, size_t n) {
    for (size_t i = 0; i < n; ++i) crc = (crc >> 8) ^ kTables[0][crc & 0xFF];
    return crc;
}

constexpr std::array<std::array<uint32_t, 256>, 4> make_shift(size_t n) {
    std::array<std::array<uint32_t, 256>, 4> shift{};
    std::array<uint32_t, 32> of_bit{};
    for (uint32_t bit = 0; bit < 32; ++bit) of_bit[bit] = after_zeros(uint32_t{1} << bit, n);
    for (uint32_t k = 0; k < 4; ++k)
        for (uint32_t b = 0; b < 256; ++b) {
            uint32_t sum = 0;
            for (uint32_t bit = 0; bit < 8; ++bit)
                if ((b >> bit & 1) != 0) sum ^= of_bit[k * 8 + bit];
            shift[k][b] = sum;
        }
    return shift;
}

constexpr auto kShift = make_shift(kStream);

inline uint32_t shifted(uint32_t crc) {
    return kShift[0][crc & 0xFF] ^ kShift[1][crc >> 8 & 0xFF] ^ kShift[2][crc >> 16 & 0xFF] ^
           kShift[3][crc >> 24];
}

inline uint64_t eight(const unsigned char* p) {
    uint64_t v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

__attribute__((target("sse4.2"), always_inline)) inline uint32_t in_a_row(const unsigned char* p, size_t n,
                                                                          uint64_t crc) {
    for (; n >= 8; p += 8, n -= 8) crc = __builtin_ia32_crc32di(crc, eight(p));
    auto rest = static_cast<uint32_t>(crc);
    if ((n & 4) != 0) {
        uint32_t four;
        std::memcpy(&four, p, sizeof four);
        rest = __builtin_ia32_crc32si(rest, four);
        p += 4;
    }
    for (n &= 3; n != 0; ++p, --n) rest = __builtin_ia32_crc32qi(rest, *p);
    return rest;
}

__attribute__((target("sse4.2"))) uint32_t by_instruction(const unsigned char* p, size_t n, uint32_t start) {
    uint64_t crc = start;
    while (n >= 3 * kStream) {
        uint64_t second = 0, third = 0;
        for (size_t i = 0; i < kStream; i += 8) {
            crc = __builtin_ia32_crc32di(crc, eight(p + i));
            second = __builtin_ia32_crc32di(second, eight(p + kStream + i));
            third = __builtin_ia32_crc32di(third, eight(p + 2 * kStream + i));
        }
        crc = shifted(static_cast<uint32_t>(crc)) ^ second;
        crc = shifted(static_cast<uint32_t>(crc)) ^ third;
        p += 3 * kStream;
        n -= 3 * kStream;
    }
    return in_a_row(p, n, crc);
}

const bool kHasInstruction = [] {
    __builtin_cpu_init();
    return __builtin_cpu_supports("sse4.2") != 0;
}();
const bool kFolds = can_fold_crc32c();

__attribute__((target("sse4.2"))) uint32_t by_processor(const unsigned char* p, size_t n, uint32_t crc) {
    if (size_t taken; n >= kFoldedFrom && kFolds) {
        crc = crc32c_folded(p, n, crc, &taken);
        p += taken;
        n -= taken;
    }
    return by_instruction(p, n, crc);
}

__attribute__((target("sse4.2"))) uint32_t behind_words(const uint64_t (&words)[5], const unsigned char* p,
                                                        size_t n) {
    uint64_t crc = UINT32_MAX;
#pragma GCC unroll 8
    for (const uint64_t word : words) crc = __builtin_ia32_crc32di(crc, word);
    if (n < kFoldedFrom) return ~in_a_row(p, n, crc);
    return ~by_processor(p, n, static_cast<uint32_t>(crc));
}

#endif

}  // namespace

uint32_t crc32c_by_table(const void* data, size_t bytes, uint32_t so_far) {
    const auto* p = static_cast<const unsigned char*>(data);
    uint32_t crc = ~so_far;
    for (; bytes >= 8; p += 8, bytes -= 8) {
        const uint32_t low =
            crc ^ (uint32_t{p[0]} | uint32_t{p[1]} << 8 | uint32_t{p[2]} << 16 | uint32_t{p[3]} << 24);
        crc = kTables[7][low & 0xFF] ^ kTables[6][low >> 8 & 0xFF] ^ kTables[5][low >> 16 & 0xFF] ^
              kTables[4][low >> 24] ^ kTables[3][p[4]] ^ kTables[2][p[5]] ^ kTables[1][p[6]] ^
              kTables[0][p[7]];
    }
    for (; bytes != 0; ++p, --bytes) crc = (crc >> 8) ^ kTables[0][(crc ^ *p) & 0xFF];
    return ~crc;
}

uint32_t crc32c(const void* data, size_t bytes, uint32_t so_far) {
#if defined(__x86_64__)
    if (kHasInstruction) [[likely]]
        return ~by_processor(static_cast<const unsigned char*>(data), bytes, ~so_far);
#endif
    return crc32c_by_table(data, bytes, so_far);
}

uint32_t crc32c(const uint64_t (&first)[5], const void* data, size_t bytes) {
#if defined(__x86_64__)
    if (kHasInstruction) [[likely]]
        return behind_words(first, static_cast<const unsigned char*>(data), bytes);
#endif
    return crc32c_by_table(data, bytes, crc32c_by_table(first, sizeof first, 0));
}

}  // namespace viaduct::wire
