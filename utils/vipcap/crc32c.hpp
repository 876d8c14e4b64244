// SPDX-License-Identifier: BSD-2-Clause
// CRC32C (Castagnoli), by a table, of parts in a row.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace viaduct::vipcap {

class Crc32c {
public:
    void add(std::span<const uint8_t> bytes) {
        for (const uint8_t byte : bytes) state_ = kTable[(state_ ^ byte) & 0xFF] ^ state_ >> 8;
    }
    uint32_t value() const { return ~state_; }

private:
    static constexpr std::array<uint32_t, 256> kTable = [] {
        std::array<uint32_t, 256> table{};
        for (uint32_t i = 0; i < 256; ++i) {
            uint32_t c = i;
            for (int bit = 0; bit < 8; ++bit) c = (c & 1) != 0 ? 0x82F63B78u ^ c >> 1 : c >> 1;
            table[i] = c;
        }
        return table;
    }();
    uint32_t state_ = ~0u;
};

}  // namespace viaduct::vipcap
