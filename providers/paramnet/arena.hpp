// SPDX-License-Identifier: BSD-2-Clause
// The shared arena of a NIC context: memory for the application that peers map as well, so that they reach it
// by plain copies. One sparse memfd of fixed size, handed to peers with the hub. Control calls of any thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "core/memory/region_table.hpp"
#include "core/shm/segment.hpp"
#include "viaduct/types.hpp"

namespace viaduct::paramnet {

inline constexpr uint32_t kArena = 1;  // Region::arena of memory in it

class Arena {
public:
    // The memfd; without it (no file of that size is permitted) nothing can be allocated, and all else works.
    Arena();
    uint64_t bytes() const { return bytes_; }
    Fd duplicate() const;

    // Zeroed memory, whole pages, mapped here; fills base, length, arena and arena_offset. invalid: no such
    // alignment; out_of_resources.
    Status allocate(uint64_t bytes, uint64_t alignment, Region* out);
    // Unmaps it and gives its pages back. No peer may be in it any more.
    void release(const Region&);

private:
    bool take(uint64_t bytes, uint64_t* offset);
    void give_back(uint64_t offset, uint64_t bytes);

    KeptFd fd_;
    uint64_t bytes_ = 0;
    std::mutex mutex_;
    std::map<uint64_t, uint64_t> free_;  // offset -> length, never adjacent
};

// Another context's arena, mapped whole. Hostile owners can give any bytes and any table; what is used of
// either lies within this mapping.
class MappedArena {
public:
    // Nothing is mapped when the descriptor does not fit `bytes`, or there is no room for it (kMappedMost).
    void map(Fd fd, uint64_t bytes);
    MappedArena() = default;
    ~MappedArena();
    MappedArena(const MappedArena&) = delete;
    MappedArena& operator=(const MappedArena&) = delete;
    // Where `length` bytes at `address` of that region lie here; nullptr when they do not lie in the arena.
    std::byte* find(const Region& region, uint64_t address, uint64_t length) const {
        if (region.arena != kArena || region.arena_offset > segment_.size() ||
            region.length > segment_.size() - region.arena_offset || length > region.length ||
            address - region.base > region.length - length)
            return nullptr;
        return segment_.data() + region.arena_offset + (address - region.base);
    }
    bool valid() const { return segment_.valid(); }

private:
    Segment segment_;
};

}  // namespace viaduct::paramnet
