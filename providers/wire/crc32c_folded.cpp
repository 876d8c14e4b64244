// SPDX-License-Identifier: BSD-2-Clause
#include "providers/wire/crc32c_folded.hpp"

#if defined(__x86_64__)

#include <immintrin.h>

#define VIADUCT_FOLDS __attribute__((target("avx512f,avx512vl,vpclmulqdq,pclmul,sse4.2")))

namespace viaduct::wire {

namespace {

// x^n modulo the polynomial. Bits are reflected, and a product of two reflected numbers is one bit too low.
constexpr uint64_t power(uint32_t n) {
    constexpr uint32_t kReflected = 0x82F63B78;
    uint32_t remainder = 0x80000000;
    for (; n != 0; --n) remainder = (remainder >> 1) ^ ((remainder & 1) != 0 ? kReflected : 0);
    return uint64_t{remainder} << 1;
}

// What moves 16 bytes so many bytes on: the first eight of them are 64 bits further away than the others.
template <uint32_t kBytes>
struct Distance {
    static constexpr auto kFirst = static_cast<int64_t>(power(8 * kBytes + 32));
    static constexpr auto kSecond = static_cast<int64_t>(power(8 * kBytes - 32));
};

VIADUCT_FOLDS inline __m512i load(const unsigned char* p) { return _mm512_loadu_si512(p); }

template <uint32_t kBytes>
VIADUCT_FOLDS inline __m512i fold(__m512i sum, __m512i next) {
    constexpr int64_t kFirst = Distance<kBytes>::kFirst, kSecond = Distance<kBytes>::kSecond;
    const __m512i by = _mm512_set_epi64(kSecond, kFirst, kSecond, kFirst, kSecond, kFirst, kSecond, kFirst);
    constexpr int kXorOfThree = 0x96;
    return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(sum, by, 0x00),
                                     _mm512_clmulepi64_epi128(sum, by, 0x11), next, kXorOfThree);
}

VIADUCT_FOLDS inline __m128i fold_lane(__m128i sum, __m128i next) {
    const __m128i by = _mm_set_epi64x(Distance<16>::kSecond, Distance<16>::kFirst);
    return _mm_xor_si128(
        _mm_xor_si128(_mm_clmulepi64_si128(sum, by, 0x00), _mm_clmulepi64_si128(sum, by, 0x11)), next);
}

}  // namespace

bool can_fold_crc32c() {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512vl") != 0 &&
           __builtin_cpu_supports("vpclmulqdq") != 0 && __builtin_cpu_supports("pclmul") != 0 &&
           __builtin_cpu_supports("sse4.2") != 0;
}

VIADUCT_FOLDS uint32_t crc32c_folded(const void* data, size_t bytes, uint32_t start, size_t* taken) {
    const auto* p = static_cast<const unsigned char*>(data);
    size_t left = bytes;
    const __m512i first = _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(start)));
    __m512i a = _mm512_xor_si512(load(p), first);
    __m512i b = load(p + 64), c = load(p + 128), d = load(p + 192);
    for (p += 256, left -= 256; left >= 256; p += 256, left -= 256) {
        a = fold<256>(a, load(p));
        b = fold<256>(b, load(p + 64));
        c = fold<256>(c, load(p + 128));
        d = fold<256>(d, load(p + 192));
    }
    a = fold<64>(fold<64>(fold<64>(a, b), c), d);
    for (; left >= 64; p += 64, left -= 64) a = fold<64>(a, load(p));
    *taken = bytes - left;
    alignas(64) __m128i lanes[4];
    _mm512_store_si512(lanes, a);
    const __m128i sum = fold_lane(fold_lane(fold_lane(lanes[0], lanes[1]), lanes[2]), lanes[3]);
    // These 16 bytes have the checksum of everything before them.
    const uint64_t half = _mm_crc32_u64(0, static_cast<uint64_t>(_mm_cvtsi128_si64(sum)));
    return static_cast<uint32_t>(_mm_crc32_u64(half, static_cast<uint64_t>(_mm_extract_epi64(sum, 1))));
}

}  // namespace viaduct::wire

#else

namespace viaduct::wire {

bool can_fold_crc32c() { return false; }
uint32_t crc32c_folded(const void*, size_t, uint32_t start, size_t* taken) {
    *taken = 0;
    return start;
}

}  // namespace viaduct::wire

#endif
