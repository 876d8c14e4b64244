// SPDX-License-Identifier: BSD-2-Clause
// The state of the receiving half of a connection. Owner: the holder of vi.recv.lock. own, peer and the other
// connection constants change only while not connected; holders of the send lock or of NicContext::slots_lock may read
// them. `polled` is written under slots_lock. Pollers may read atomic members without a lock. Rules: docs/data-path.md,
// docs/shared-words.md.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/copy/copy.hpp"
#include "providers/paramnet/segment_layout.hpp"

namespace viaduct::paramnet {

// A long message that this end may not fetch from its sender's memory: the sender hands it over in pieces (relay.cpp).
struct IncomingRelay {
    bool active = false;
    uint32_t asked = 0;      // the last piece asked for: EndRecord::relay_wanted
    uint32_t total = 0;      // bytes of the message
    uint32_t flags = 0;      // of its line
    uint32_t immediate = 0;  // immediate data of its line
};

// A message that is arriving in fragments.
struct IncomingMessage {
    enum Kind : uint8_t { none, into_receive, into_memory, discarded };
    Kind kind = none;
    uint32_t flags = 0;      // of its first line
    uint32_t immediate = 0;  // immediate data of its first line
    uint32_t total = 0;      // bytes of the message
    uint32_t remaining = 0;  // bytes that have not arrived
    uint32_t handle = 0;     // into_memory: the region
    uint64_t address = 0;    // into_memory: where the next bytes go
    ProbeMark mark{};        // with kFlagProbe
    SegmentCursor cursor;    // into_receive: where the next bytes go
};

struct alignas(128) Rx {
    std::atomic<const Line*> lines;   // of this lane; a lane of zeros while not connected
    std::atomic<uint32_t> next{0};    // the next line to take; lines and units are counted from the connection's start
    uint32_t poll_budget = 0;         // lines that may be taken before the line behind is looked at (lane_receive.cpp)
    std::atomic<uint32_t> polled{0};  // 1: recv_mode in own is kModePolled
    uint32_t published = 0;           // lines taken, as the sender has been told (EndRecord::consumed)
    uint32_t unit_next = 0;           // units of the block ring that are taken or skipped
    uint32_t units_published = 0;     // of these, as the sender has been told
    uint32_t acks = 0;                // messages acknowledged: EndRecord::placed
    uint32_t base = 0;                // recv.completed when the connection started: EndRecord::posted counts from there
    bool acknowledged = false;        // constant: Reliable Reception, whose messages are acknowledged once placed
    bool unreliable = false;          // constant: Unreliable
    bool ended = false;               // a line has broken the connection: none behind it is taken
    bool in_row = false;              // the line being taken was there when the one before was done
    uint32_t acks_collected = 0;      // of EndRecord::placed of the peer: what a line has been looked at with
    const std::byte* blocks = nullptr;  // constant: the block ring of this lane
    EndRecord* own = nullptr;           // constant: what this end tells the peer
    const EndRecord* peer = nullptr;    // constant: what the peer tells this end
    IncomingMessage message;
    IncomingRelay relay;
};

}  // namespace viaduct::paramnet
