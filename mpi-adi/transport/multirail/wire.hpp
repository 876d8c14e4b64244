// SPDX-License-Identifier: BSD-2-Clause
// The packets of several lanes to one process: little-endian numbers, without padding. Layout only; docs/adi-rails.md
// explains their use.
#pragma once

#include <cstdint>

#include "mpi-adi/transport/protocol/frame.hpp"
#include "mpi-adi/transport/protocol/wire.hpp"

namespace viaduct::multirail {

using protocol::Le16;
using protocol::Le32;
using protocol::Le64;

constexpr uint32_t kMagic = 0x354C4952;  // "RIL5"
constexpr size_t kMostRails = protocol::kMostHandles;  // so that a card stays below the 128 bytes of an environment
constexpr uint32_t kWindow = 1024;                     // frames to a process that may be under way
// Bytes of a process's own mapping, of which no page is touched. A size that nothing else has: without randomized
// addresses a new program often maps one page at the place where the old one did.
constexpr size_t kOwnMapping = 61 * size_t{4096};

// In front of everything. A short message travels as a message of its lane: this, and its data. Any other frame is the
// payload of a frame `carried`: this, the frame, its payload.
struct Prefix {
    Le32 number;  // in the order of all frames to this process; of kinds without one: 0
    Le32 had;     // all frames before this number have come the other way
};
static_assert(sizeof(Prefix) == 8);
constexpr size_t kCarriedHead = sizeof(Prefix) + sizeof(protocol::Frame);

// Frame types beside those of the protocol. They have no number.
enum class Kind : uint8_t {
    hello = 32,   // first on every connection: Report. sreq: number of this connection, counted by its sender
    report = 33,  // the same, later: a connection has ended
    probe = 34,   // sreq: the sender's clock
    echo = 35,    // the same, sent back
    ack = 36,     // an acknowledgement, in its Prefix
};

// What has arrived at its sender, which receives nothing more through connections that have ended.
struct Report {
    Le64 mapping;            // its sender's own mapping is there in its memory, of kOwnMapping bytes; 0: there is none
    Le32 up_to[kMostRails];  // connections of each rail up to this number, as its receiver counts, have ended
    uint8_t received[kWindow / 8] = {};  // bit i: the frame of number Prefix::had + i has arrived
};
static_assert(sizeof(Report) == 8 + 4 * kMostRails + 128);

// What a process publishes (its environment).
struct Card {
    Le32 magic;
    Le32 pid;
    Le64 host;  // processes with the same number share this host's NICs
    Le64 pids;  // and these its process numbers
    Le16 depth;
    uint8_t reserve;
    uint8_t rails;
    struct Rail {
        Le32 network;  // kind of NIC; 0: this rail does not work here
        uint8_t address_len;
        uint8_t address[7];
    } rail[kMostRails];
};
static_assert(sizeof(Card) == 28 + 12 * kMostRails);
static_assert(sizeof(Card) < 128);

}  // namespace viaduct::multirail
