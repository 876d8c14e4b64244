// SPDX-License-Identifier: BSD-2-Clause
// Copies of the data path: tiny ones without a call, scattered ones, and ones whose bytes become visible in
// rising address order. Called by providers on the thread that moves a message; nothing here allocates or
// calls the system.
#pragma once

#include <vipl.h>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/memory/region_table.hpp"
#include "core/vi/descriptor.hpp"

namespace viaduct {

// Sixteen bytes at `at`, and those at the same distance from the end.
[[gnu::always_inline]] inline void copy_both_ends(std::byte* to, const std::byte* from, size_t n, size_t at) {
    typedef unsigned char Sixteen __attribute__((vector_size(16)));
    Sixteen near_start, near_end;
    __builtin_memcpy(&near_start, from + at, 16);
    __builtin_memcpy(&near_end, from + n - 16 - at, 16);
    __builtin_memcpy(to + at, &near_start, 16);
    __builtin_memcpy(to + n - 16 - at, &near_end, 16);
}

// At most 128 bytes by a few moves of fixed size: a call of memcpy would cost more than the copy, and a loop
// registers.
[[gnu::always_inline]] inline void copy_small(std::byte* to, const std::byte* from, size_t n) {
    if (n > 16) [[unlikely]] {
        copy_both_ends(to, from, n, 0);
        if (n > 32) copy_both_ends(to, from, n, 16);
        if (n > 64) {
            copy_both_ends(to, from, n, 32);
            copy_both_ends(to, from, n, 48);
        }
    } else if (n >= 8) [[likely]] {
        uint64_t first, last;
        __builtin_memcpy(&first, from, 8);
        __builtin_memcpy(&last, from + n - 8, 8);
        __builtin_memcpy(to, &first, 8);
        __builtin_memcpy(to + n - 8, &last, 8);
    } else if (n >= 4) {
        uint32_t first, last;
        __builtin_memcpy(&first, from, 4);
        __builtin_memcpy(&last, from + n - 4, 4);
        __builtin_memcpy(to, &first, 4);
        __builtin_memcpy(to + n - 4, &last, 4);
    } else if (n != 0) {
        if (n > 1) {
            uint16_t first;
            __builtin_memcpy(&first, from, 2);
            __builtin_memcpy(to, &first, 2);
        }
        to[n - 1] = from[n - 1];
    }
}

// Where a message is within the data segments of a descriptor. The descriptor's memory belongs to the
// application, and a peer that may write to it by RDMA can change it at any time: the walk is bounded by
// `remaining` and `segments_left`, and each piece is checked, as read, in the moment of its use.
struct SegmentCursor {
    const RegionView* regions = nullptr;  // none: pieces are not checked
    uint32_t ptag = 0;
    const VIP_DESCRIPTOR_SEGMENT* segment = nullptr;
    uint32_t segments_left = 0;
    uint32_t offset = 0;     // within *segment
    uint32_t remaining = 0;  // of the whole message

    void begin(const VIP_DESCRIPTOR* d, uint32_t total, const RegionView* check = nullptr, uint32_t tag = 0) {
        regions = check;
        ptag = tag;
        // As check_send and check_receive have found it, or it was changed since: then nothing is moved.
        uint32_t count = read_segment_count(d);
        if (check != nullptr && !lies_in_registered_memory(d, count, *check, tag)) count = 0;
        const uint32_t addresses = operation_of(d) != VIP_CONTROL_OP_SENDRECV ? 1 : 0;
        segment = segments_of(d) + addresses;
        segments_left = count > addresses ? count - addresses : 0;
        offset = 0;
        remaining = total;
    }

    // The next contiguous piece, at most `limit` bytes; null when there is none left, or it may not be
    // touched.
    std::byte* next(uint32_t limit, uint32_t* n) {
        while (segments_left != 0) {
            const volatile VIP_DATA_SEGMENT& s = segment->Local;
            const uint32_t length = s.Length;
            if (offset < length) {
                uint32_t piece = length - offset;
                if (piece > limit) piece = limit;
                if (piece > remaining) piece = remaining;
                if (piece == 0) return nullptr;
                const uint64_t address = s.Data.AddressBits + offset;
                if (regions != nullptr && regions->check(s.Handle, address, piece, ptag) != RegionCheck::ok)
                    [[unlikely]]
                    return nullptr;
                offset += piece;
                remaining -= piece;
                *n = piece;
                return reinterpret_cast<std::byte*>(address);
            }
            ++segment;
            --segments_left;
            offset = 0;
        }
        return nullptr;
    }
};

// Memory of the descriptor -> `to`, and back. The amounts moved (less than n only if the descriptor was
// changed under us).
inline uint32_t gather(SegmentCursor& cursor, std::byte* to, uint32_t n) {
    uint32_t done = 0, piece = 0;
    while (done < n) {
        const std::byte* from = cursor.next(n - done, &piece);
        if (from == nullptr) break;
        std::memcpy(to + done, from, piece);
        done += piece;
    }
    return done;
}

// Past the caches, so that the lines need not be fetched from the processor that has read their last contents
// one by one; where `to` is not aligned or the machine has no such stores, as ever. streaming_fence() before
// the bytes are announced.
inline void copy_streaming(std::byte* to, const std::byte* from, size_t n) {
#if defined(__x86_64__)
    if (reinterpret_cast<uintptr_t>(to) % 64 == 0) {
        for (; n >= 64; n -= 64, to += 64, from += 64) {
            const auto* source = reinterpret_cast<const __m128i*>(from);
            auto* target = reinterpret_cast<__m128i*>(to);
            const __m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1),
                          c = _mm_loadu_si128(source + 2), d = _mm_loadu_si128(source + 3);
            _mm_stream_si128(target, a);
            _mm_stream_si128(target + 1, b);
            _mm_stream_si128(target + 2, c);
            _mm_stream_si128(target + 3, d);
        }
    }
#endif
    std::memcpy(to, from, n);
}
inline void streaming_fence() {
#if defined(__x86_64__)
    _mm_sfence();
#endif
}

// gather() by copy_streaming().
inline uint32_t gather_streaming(SegmentCursor& cursor, std::byte* to, uint32_t n) {
    uint32_t done = 0, piece = 0;
    while (done < n) {
        const std::byte* from = cursor.next(n - done, &piece);
        if (from == nullptr) break;
        copy_streaming(to + done, from, piece);
        done += piece;
    }
    streaming_fence();
    return done;
}

inline uint32_t scatter(SegmentCursor& cursor, const std::byte* from, uint32_t n) {
    uint32_t done = 0, piece = 0;
    while (done < n) {
        std::byte* to = cursor.next(n - done, &piece);
        if (to == nullptr) break;
        std::memcpy(to, from + done, piece);
        done += piece;
    }
    return done;
}

// How many of `n` bytes at `address` lie before the line that holds the last one.
inline uint64_t before_last_line(uint64_t address, uint64_t n) {
    if (n == 0) return 0;
    const uint64_t last_line = (address + n - 1) & ~uint64_t{63};
    return last_line > address ? last_line - address : 0;
}

// What is stored after this becomes visible after it.
inline void copy_before(std::byte* to, const std::byte* from, size_t n) {
#if defined(__x86_64__)
    // Plain stores keep their order; a fence would make each write wait for the other processor's cache.
    if (n <= 1024) {
        for (; n >= 64; n -= 64, to += 64, from += 64) {
            const auto* source = reinterpret_cast<const __m128i*>(from);
            auto* target = reinterpret_cast<__m128i*>(to);
            const __m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1),
                          c = _mm_loadu_si128(source + 2), d = _mm_loadu_si128(source + 3);
            _mm_storeu_si128(target, a);
            _mm_storeu_si128(target + 1, b);
            _mm_storeu_si128(target + 2, c);
            _mm_storeu_si128(target + 3, d);
        }
        std::memcpy(to, from, n);
        std::atomic_thread_fence(std::memory_order_release);
        return;
    }
    std::memcpy(to, from, n);
    _mm_sfence();  // behind string and streaming stores
#else
    std::memcpy(to, from, n);
    std::atomic_thread_fence(std::memory_order_release);
#endif
}

// Whole words, to a place that is aligned for them, one after the other.
[[gnu::always_inline]] inline void copy_words(std::byte* to, const uint64_t* from, size_t words) {
    auto* target = reinterpret_cast<uint64_t*>(to);
    const auto line = [&] {
        uint64_t word[8];
        std::memcpy(word, from, sizeof word);
        for (unsigned i = 0; i < 8; ++i) std::atomic_ref(target[i]).store(word[i], std::memory_order_release);
        from += 8, target += 8, words -= 8;
    };
    while (words >= 8) line();
    for (; words != 0; --words, ++from) {
        uint64_t word;
        std::memcpy(&word, from, sizeof word);
        std::atomic_ref(*target++).store(word, std::memory_order_release);
    }
}

// Programs watch the last bytes of an RDMA write (spec/compat T10, T11): everything before the last line is
// in place first, then that line is written by plain stores of rising address.
inline void copy_rising(std::byte* to, const std::byte* from, size_t n) {
    if (n == 8 && reinterpret_cast<uintptr_t>(to) % 8 == 0) [[likely]] {  // a flag, a counter
        uint64_t word;
        std::memcpy(&word, from, 8);
        std::atomic_ref(reinterpret_cast<uint64_t&>(*to)).store(word, std::memory_order_release);
        return;
    }
    const size_t body = before_last_line(reinterpret_cast<uintptr_t>(to), n);
    if (body != 0) {
        copy_before(to, from, body);
        to += body;
        from += body;
        n -= body;
    }
    while (n != 0 && (reinterpret_cast<uintptr_t>(to) & 7) != 0) {
        std::atomic_ref(reinterpret_cast<uint8_t&>(*to++))
            .store(static_cast<uint8_t>(*from++), std::memory_order_release);
        --n;
    }
    for (; n >= 8; n -= 8, to += 8, from += 8) {
        uint64_t word;
        std::memcpy(&word, from, 8);
        std::atomic_ref(reinterpret_cast<uint64_t&>(*to)).store(word, std::memory_order_release);
    }
    if (n >= 4) {
        uint32_t word;
        std::memcpy(&word, from, 4);
        std::atomic_ref(reinterpret_cast<uint32_t&>(*to)).store(word, std::memory_order_release);
        to += 4, from += 4, n -= 4;
    }
    for (; n != 0; --n)
        std::atomic_ref(reinterpret_cast<uint8_t&>(*to++))
            .store(static_cast<uint8_t>(*from++), std::memory_order_release);
}

}  // namespace viaduct
