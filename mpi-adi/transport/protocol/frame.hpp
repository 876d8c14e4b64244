// SPDX-License-Identifier: BSD-2-Clause
// The frames of the message protocol. A frame is sent whole, in order, with `bytes` bytes of payload behind it. Each
// transport has its own layout; wire.hpp has the layout of payloads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mpi-adi/transport/adi/cmpi_adi.h"

namespace viaduct::protocol {

enum class FrameType : uint8_t {
    eager = 1,            // a message, or the first part of one when bytes < length
    next = 2,             // the following part of that message; no other frame comes between (spec/adi C53)
    request = 3,          // envelope of a long message; flags: mode, and the Method that the sender offers << 4
    reply = 4,            // it is matched; flags: the Method that the receiver has chosen
    data = 5,             // a piece of it
    placed = 6,           // `length` more bytes of it have been written into the receiver's memory
    fetched = 7,          // the receiver has read its part out of the sender's memory
    cancel = 8,           // the sender recalls a long message
    cancel_reply = 9,     // flags: 1 it is taken back
    closing = 10,         // nothing more comes
    envelopes_only = 11,  // flags: 1 no eager data please, 0 over
    part = 17,            // a piece of a message that is otherwise written; length: where in it it begins
    carried = 16,         // a frame of a process that several lanes serve, in the payload (UpperLayer)
};

// Message data leaves what a transport keeps for control frames, which answer and end messages (spec/adi C33).
constexpr bool carries_data(FrameType type) {
    return type == FrameType::eager || type == FrameType::next || type == FrameType::data || type == FrameType::part;
}

constexpr bool may_carry(FrameType type) {
    return carries_data(type) || type == FrameType::request || type == FrameType::reply || type == FrameType::carried;
}

struct Frame {
    FrameType type;
    uint8_t flags;
    uint16_t number;  // of the transport
    uint32_t bytes;   // of payload
    uint64_t context;
    int32_t tag;
    int32_t rank;
    uint64_t length;  // of the message; reply: how much of it there is room for; data: the lower half of
                      // where it begins
    uint64_t sreq;
    uint64_t rreq;
};
static_assert(sizeof(Frame) == 48);

// Where the payload of a frame lies: in memory, or in a request's data from `offset` on.
struct Payload {
    const void* data = nullptr;
    const mpip_req_t* request = nullptr;
    size_t offset = 0;

    void copy(void* to, size_t bytes) const {
        if (request != nullptr) {
            mpip_req_collect(request, offset, to, bytes);
        } else if (bytes != 0) {
            mpip_copy(to, data, bytes);
        }
    }
    // Where it lies in one piece; nullptr: it has to be copied out.
    const char* contiguous() const {
        if (request == nullptr) return static_cast<const char*>(data);
        return mpip_req_is_contig(request) ? static_cast<const char*>(request->r_buf) + offset : nullptr;
    }
};

// How the data of a long message goes: in frames, by remote writes of the sender, by remote reads of the
// receiver, or both at once (the receiver reads the beginning). In a request, get and both are the receiver's
// choice.
enum class Method : uint8_t { frames = 0, put = 1, get = 2, both = 3 };

}  // namespace viaduct::protocol
