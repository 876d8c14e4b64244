// SPDX-License-Identifier: BSD-2-Clause
// The layout of via packets (spec/adi 2.3, C34, C38, C39; docs/adi.md): fixed, little-endian, without padding. Requests
// are named by number (request_ids.hpp), never by address. Each process publishes kWireVersion in its environment for
// the others. Types and constants only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mpi-adi/transport/protocol/wire.hpp"

namespace viaduct::via {

constexpr uint32_t kWireVersion = 7;

using protocol::Le16;
using protocol::Le32;
using protocol::Le64;

// Values below 12, and `carried`, are those of protocol::FrameType (frame.hpp).
enum class PacketType : uint8_t {
    eager = 1,  // a whole message
    next = 2,
    request = 3,
    reply = 4,
    data = 5,
    placed = 6,
    fetched = 7,
    cancel = 8,
    cancel_reply = 9,
    closing = 10,  // costs no credit
    envelopes_only = 11,
    noop = 12,        // credits; costs none itself
    ring_offer = 13,  // memory that the other side may write packets into (ring_layout.hpp)
    wake = 14,        // the ring was written to while its reader sleeps
    first = 15,       // an eager frame that is the first part of its message
    carried = 16,
    hello = 17,  // the first of each side; costs no credit, and has a receive of its own
};

struct Header {
    PacketType type;
    uint8_t flags;  // of the frame
    Le16 sequence;  // counts packets that cost credit or a slot; 0 in noop and closing
    Le16 credit;    // receives posted again since the last packet; 0 in a ring, as are the next two
    uint8_t view;   // credits the sender of this packet has left, 255: that or more (remote_cc)
    uint8_t noops;  // receives for credit-free packets its sender has posted anew, modulo 256
    Le32 source;    // world rank
};
static_assert(sizeof(Header) == 12);

// The compact form of the envelope, for a whole message: no request numbers, and the length is that of the packet. With
// its 28 bytes in front, messages up to 20 bytes fit into one line of the default NIC.
struct Eager {
    Header header;
    Le64 context;
    Le32 tag;
    Le32 rank;
};
static_assert(sizeof(Eager) == 28);

// An eager packet in a slot: the data lies in front, SlotEnd behind. Whole words, see post_eager_to_ring().
struct EagerInSlot {
    Le32 unused;
    Eager start;
};
static_assert(sizeof(EagerInSlot) == 32);

struct Next {
    Header header;
    Le32 number;  // of the packet in its message
};
static_assert(sizeof(Next) == 16);

struct Data {
    Header header;
    Le64 rreq;
    Le32 at;  // where in the message it begins: the lower half
};
static_assert(sizeof(Data) == 24);

// All other frames.
struct Control {
    Header header;
    Le32 announced;  // request: receives that the frames of data would take; first: bytes of data here
    Le64 context;
    Le32 tag;
    Le32 rank;
    Le64 length;
    Le64 sreq;
    Le64 rreq;
};
static_assert(sizeof(Control) == 56);

// Address and memory handle of the area into which the receiver of this packet may write.
struct RingOffer {
    Header header;
    Le64 address;
    Le32 memhandle;
};
static_assert(sizeof(RingOffer) == 24);

// Shortest length a packet of a type may have; 0: no such type.
constexpr size_t least_length(PacketType type) {
    switch (type) {
        case PacketType::eager:
            return sizeof(Eager);
        case PacketType::next:
            return sizeof(Next);
        case PacketType::data:
            return sizeof(Data);
        case PacketType::ring_offer:
            return sizeof(RingOffer);
        case PacketType::noop:
        case PacketType::wake:
        case PacketType::closing:
        case PacketType::hello:
            return sizeof(Header);
        case PacketType::first:
        case PacketType::request:
        case PacketType::reply:
        case PacketType::placed:
        case PacketType::fetched:
        case PacketType::cancel:
        case PacketType::cancel_reply:
        case PacketType::envelopes_only:
        case PacketType::carried:
            return sizeof(Control);
    }
    return 0;
}

// Packets that travel without credit and without a place in the sequence.
constexpr bool costs_no_credit(PacketType type) { return type == PacketType::noop || type == PacketType::closing; }

}  // namespace viaduct::via
