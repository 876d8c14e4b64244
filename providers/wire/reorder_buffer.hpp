// SPDX-License-Identifier: BSD-2-Clause
// The reorder buffer: memory for early frames, shared by all links of a node and allocated once. A frame that
// finds no room is dropped, and its sender sends it again. Used by Receiver only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

namespace viaduct::wire {

class ReorderBuffer {
public:
    static constexpr uint16_t kNone = UINT16_MAX;

    ReorderBuffer(uint32_t frames, uint32_t frame_bytes)
        : frame_bytes_(frame_bytes), memory_(new std::byte[size_t{frames} * frame_bytes]), bytes_(frames) {
        for (uint32_t i = frames; i-- != 0;) free_.push_back(static_cast<uint16_t>(i));
    }

    // kNone when all room is taken.
    uint16_t keep(const std::byte* frame, uint32_t bytes) {
        if (free_.empty() || bytes > frame_bytes_) return kNone;
        const uint16_t place = free_.back();
        free_.pop_back();
        std::memcpy(memory_.get() + size_t{place} * frame_bytes_, frame, bytes);
        bytes_[place] = bytes;
        return place;
    }
    const std::byte* frame(uint16_t place) const { return memory_.get() + size_t{place} * frame_bytes_; }
    uint32_t bytes(uint16_t place) const { return bytes_[place]; }
    void release(uint16_t place) { free_.push_back(place); }
    size_t free() const { return free_.size(); }

private:
    uint32_t frame_bytes_;
    std::unique_ptr<std::byte[]> memory_;
    std::vector<uint32_t> bytes_;
    std::vector<uint16_t> free_;
};

}  // namespace viaduct::wire
