// SPDX-License-Identifier: BSD-2-Clause
// The segment that each process offers (spec/adi 10; order of accesses: docs/shared-words.md). It has one ring for each
// process of the job; the owner's own is unused. A ring has 512 lines and a byte ring of blocks. A line holds an eager
// payload of up to kInline bytes; every other payload lies in the blocks. A line's first word is stored last. The
// sender writes lines and blocks, the receiver writes Consumed. Types only: no lock, no system call.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/process/offered_memory.hpp"

namespace viaduct::shm {

constexpr uint32_t kMagic = 0x344d4853;  // "SHM4"
constexpr uint32_t kLines = 512;
constexpr size_t kLineBytes = 64;
constexpr size_t kInline = 40;

struct Line {
    std::atomic<uint64_t> word;  // number (32) | type (8) | bytes of payload (24)
    char body[56];               // eager: context 8, tag 4, rank 4, payload; otherwise the frame
};
static_assert(sizeof(Line) == kLineBytes);

inline uint64_t make_word(uint32_t number, uint8_t type, uint32_t bytes) {
    return number | static_cast<uint64_t>(type) << 32 | static_cast<uint64_t>(bytes) << 40;
}

struct alignas(128) Consumed {
    std::atomic<uint32_t> lines;
    std::atomic<uint64_t> blocks;  // bytes
};

struct alignas(128) SegmentHead {
    OfferedMark mark;
    alignas(128) std::atomic<uint32_t> asleep;  // the owner sleeps on doorbell
    std::atomic<uint32_t> doorbell;
};

// Each ring begins where a Consumed may lie.
inline size_t lane_bytes(size_t block_bytes) {
    const size_t bytes = sizeof(Consumed) + kLines * kLineBytes + block_bytes;
    return (bytes + alignof(Consumed) - 1) & ~(alignof(Consumed) - 1);
}
inline size_t segment_bytes(size_t lanes, size_t block_bytes) {
    return sizeof(SegmentHead) + lanes * lane_bytes(block_bytes);
}

// One end's view of a ring.
struct Ring {
    Consumed* taken = nullptr;
    Line* lines = nullptr;
    char* blocks = nullptr;
    size_t block_bytes = 0;

    Ring() = default;
    Ring(std::byte* segment, size_t index, size_t bytes) {
        std::byte* start = segment + sizeof(SegmentHead) + index * lane_bytes(bytes);
        taken = reinterpret_cast<Consumed*>(start);
        lines = reinterpret_cast<Line*>(start + sizeof(Consumed));
        blocks = reinterpret_cast<char*>(start + sizeof(Consumed) + kLines * kLineBytes);
        block_bytes = bytes;
    }
    // Where a payload lies that begins at that count of bytes: never around the end. Both ends skip alike.
    uint64_t place(uint64_t count, size_t bytes) const {
        const size_t at = count % block_bytes;
        return at + bytes > block_bytes ? count + (block_bytes - at) : count;
    }
};

inline size_t rounded(size_t bytes) { return (bytes + kLineBytes - 1) & ~(kLineBytes - 1); }

}  // namespace viaduct::shm
