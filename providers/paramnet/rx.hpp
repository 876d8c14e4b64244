// SPDX-License-Identifier: BSD-2-Clause
// The state of the receiving half of a connection. Under vi.recv.lock; atomic members may be looked at by pollers
// without.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/copy/copy.hpp"
#include "providers/paramnet/segment_layout.hpp"

namespace viaduct::paramnet {

// A message that we may not fetch and have its sender hand over (relay.cpp).
struct IncomingRelay {
    bool active = false;
    uint32_t asked = 0;  // EndRecord::relay_wanted
    uint32_t total = 0;
    uint32_t flags = 0;
    uint32_t immediate = 0;
};

// A message that is arriving in fragments.
struct IncomingMessage {
    enum Kind : uint8_t { none, into_receive, into_memory, discarded };
    Kind kind = none;
    uint32_t flags = 0;  // of its first line
    uint32_t immediate = 0;
    uint32_t total = 0;
    uint32_t remaining = 0;
    uint32_t handle = 0;  // into_memory
    uint64_t address = 0;
    ProbeMark mark{};      // kFlagProbe
    SegmentCursor cursor;  // into_receive
};

struct alignas(128) Rx {
    std::atomic<const Line*> lines;  // a lane of zeros while not connected
    std::atomic<uint32_t> next{0};
    uint32_t poll_budget = 0;         // so many more lines to take without a look at the one behind (lane_receive.cpp)
    std::atomic<uint32_t> polled{0};  // recv_mode of our end record is kModePolled
    uint32_t published = 0;           // lines told to the sender
    uint32_t unit_next = 0;
    uint32_t units_published = 0;
    uint32_t acks = 0;
    uint32_t base = 0;  // recv.posted when `posted` in the end record was 0
    bool acknowledged = false;
    bool unreliable = false;
    bool ended = false;   // a line has broken the connection: none behind it is taken
    bool in_row = false;  // the line being taken was there when the one before was done
    const std::byte* blocks = nullptr;
    EndRecord* own = nullptr;
    const EndRecord* peer = nullptr;
    IncomingMessage message;
    IncomingRelay relay;
};

}  // namespace viaduct::paramnet
