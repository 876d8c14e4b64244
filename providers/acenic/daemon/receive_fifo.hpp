// SPDX-License-Identifier: BSD-2-Clause
// Frames that have arrived for a host while it has no receive descriptor for them. As on the card, they wait in memory
// of the card until the host posts descriptors, and are lost when that memory is used up. So a host without a processor
// for a moment loses nothing, and no host delays the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "providers/acenic/tigon/firmware.hpp"

namespace viaduct::acenic {

// The memory in which frames of all hosts wait. A host may have as much as is left for the others, so that
// there is always some for one that has nothing yet: alone it gets a half, two get a third each.
class CardMemory {
public:
    explicit CardMemory(size_t bytes) : free_(bytes) {}
    // For a host that has `held` already. False: it has had its share.
    bool take(size_t held, size_t bytes) {
        if (held + bytes > free_) return false;
        free_ -= bytes;
        return true;
    }
    void give_back(size_t bytes) { free_ += bytes; }

private:
    size_t free_;
};

// Of one host.
class ReceiveFifo {
public:
    explicit ReceiveFifo(CardMemory& memory) : memory_(memory) {}
    ~ReceiveFifo() { memory_.give_back(held_); }
    ReceiveFifo(const ReceiveFifo&) = delete;
    ReceiveFifo& operator=(const ReceiveFifo&) = delete;

    // For the host, now or as soon as it has a descriptor, in the order in which frames have come; counted as
    // dropped when it has neither that nor memory.
    void deliver(tigon::Firmware&, std::span<const std::byte> head, std::span<const std::byte> body);
    // Hands over what there are descriptors for. True: there was something.
    bool drain(tigon::Firmware&);
    bool empty() const { return frames_.empty(); }
    // Whether drain would find something to do.
    bool may_drain(const tigon::Firmware&) const;
    uint64_t waited() const { return waited_; }  // frames, so far

private:
    CardMemory& memory_;
    std::deque<std::vector<std::byte>> frames_;
    size_t held_ = 0;
    uint64_t waited_ = 0;
};

}  // namespace viaduct::acenic
