// SPDX-License-Identifier: BSD-2-Clause
// What packets between two rails look like, little-endian, without padding. Pure layout; docs/adi-rails.md
// tells what they are for.
#pragma once

#include <cstdint>

#include "mpi-adi/transport/via/wire.hpp"

namespace viaduct::rails {

using via::Le16;
using via::Le32;
using via::Le64;

constexpr uint32_t kMagic = 0x324C4952;  // "RIL2"
constexpr size_t kMostRails = 8;         // so that a card stays below the 128 bytes of an environment

enum class Kind : uint8_t {
    frame = 1,   // of the protocol: the only kind with a number
    hello = 2,   // first on every connection: Report
    report = 3,  // the same, later: a rail has ended
    probe = 4,   // Probe: say when you have it
    echo = 5,    // Probe as it came
    noop = 6,    // credits; costs none itself
};

struct Header {
    Kind kind;
    uint8_t view;   // credits the sender of the packet has left, 255: that or more
    Le16 credit;    // receives posted anew since the last packet: so many packets are here for good
    uint8_t noops;  // receives for credit-free packets its sender has posted anew, modulo 256
    uint8_t unused[3];
    Le32 source;    // world rank
    Le32 sequence;  // frame: its place in the order of all frames to this peer
};
static_assert(sizeof(Header) == 16);

// What became of the connections of one rail, as the receiver of packets knows.
struct Ended {
    Le32 up_to;     // connections up to this number have ended
    Le32 number;    // of the last of them that brought frames
    Le32 received;  // packets it brought, all kinds that cost credit
};
static_assert(sizeof(Ended) == 12);

struct Report {
    Header header;
    Le32 number;  // of this connection, counted by its sender
    Ended ended[kMostRails];
};
static_assert(sizeof(Report) == 16 + 4 + 12 * kMostRails);

struct Probe {
    Header header;
    Le64 time;  // the asker's clock, for nobody else
};
static_assert(sizeof(Probe) == 24);

// What a process tells the others (its environment).
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

}  // namespace viaduct::rails
