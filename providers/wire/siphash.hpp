// SPDX-License-Identifier: BSD-2-Clause
// SipHash-2-4 of Aumasson and Bernstein: a keyed hash of 64 bits, made for short messages. Used by auth.cpp.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace viaduct::wire {

struct Key {
    uint64_t low = 0, high = 0;  // bytes 0 to 7 and 8 to 15, little-endian
    bool operator==(const Key&) const = default;
};

class SipHash {
public:
    explicit SipHash(const Key& key)
        : a_(key.low ^ 0x736f6d6570736575u),
          b_(key.high ^ 0x646f72616e646f6du),
          c_(key.low ^ 0x6c7967656e657261u),
          d_(key.high ^ 0x7465646279746573u) {}

    // Parts may have any length; only their bytes in a row count.
    void add(const void* data, size_t n) {
        const auto* p = static_cast<const unsigned char*>(data);
        length_ += n;
        for (; n != 0 && filled_ != 0; ++p, --n) add_byte(*p);
        for (; n >= 8; p += 8, n -= 8) {
            uint64_t word;
            std::memcpy(&word, p, sizeof word);
            if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
            take(word);
        }
        for (; n != 0; ++p, --n) add_byte(*p);
    }

    uint64_t finish() {
        take(rest_ | uint64_t{length_ & 0xFF} << 56);
        c_ ^= 0xFF;
        for (int i = 0; i < 4; ++i) round();
        return a_ ^ b_ ^ c_ ^ d_;
    }

private:
    void add_byte(unsigned char byte) {
        rest_ |= uint64_t{byte} << 8 * filled_;
        if (++filled_ != 8) return;
        take(rest_);
        rest_ = 0;
        filled_ = 0;
    }
    void take(uint64_t word) {
        d_ ^= word;
        round();
        round();
        a_ ^= word;
    }
    void round() {
        a_ += b_;
        b_ = std::rotl(b_, 13) ^ a_;
        a_ = std::rotl(a_, 32);
        c_ += d_;
        d_ = std::rotl(d_, 16) ^ c_;
        a_ += d_;
        d_ = std::rotl(d_, 21) ^ a_;
        c_ += b_;
        b_ = std::rotl(b_, 17) ^ c_;
        c_ = std::rotl(c_, 32);
    }

    uint64_t a_, b_, c_, d_;
    uint64_t rest_ = 0;
    uint32_t filled_ = 0;
    size_t length_ = 0;
};

}  // namespace viaduct::wire
