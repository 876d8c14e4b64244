// SPDX-License-Identifier: BSD-2-Clause
// What lies in shared memory: one segment for each process, in it one ring for each other process that may
// send to it. It has 64-byte lines, whose first word is written last and holds the line's
// number, and blocks for payload that does not fit into its line. The sender writes lines and
// blocks, the receiver the two counts of what it has taken.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace viaduct::shm {

constexpr uint32_t kMagic = 0x324d4853;  // "SHM2"
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

struct alignas(128) Taken {
    std::atomic<uint32_t> lines;
    std::atomic<uint64_t> blocks;  // bytes
};

struct alignas(128) SegmentHead {
    uint32_t magic;
    uint32_t lanes;
    uint64_t block_bytes;
    alignas(128) std::atomic<uint32_t> asleep;  // the owner sleeps on doorbell
    std::atomic<uint32_t> doorbell;
};

inline size_t lane_bytes(size_t block_bytes) { return sizeof(Taken) + kLines * kLineBytes + block_bytes; }
inline size_t segment_bytes(size_t lanes, size_t block_bytes) {
    return sizeof(SegmentHead) + lanes * lane_bytes(block_bytes);
}

// One end's view of a ring.
struct Ring {
    Taken* taken = nullptr;
    Line* lines = nullptr;
    char* blocks = nullptr;
    size_t block_bytes = 0;

    Ring() = default;
    Ring(std::byte* segment, size_t index, size_t bytes) {
        std::byte* start = segment + sizeof(SegmentHead) + index * lane_bytes(bytes);
        taken = reinterpret_cast<Taken*>(start);
        lines = reinterpret_cast<Line*>(start + sizeof(Taken));
        blocks = reinterpret_cast<char*>(start + sizeof(Taken) + kLines * kLineBytes);
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
