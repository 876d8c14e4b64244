// SPDX-License-Identifier: BSD-2-Clause
// A process that is a peer of via by hand: what it puts on the wire, and what it takes off, does not pass
// through its own module. wire_peer.cpp is the only file that these tests need to know packets and
// connections from; it makes no progress of the module, so that nothing else is on the wire.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cases.hpp"

namespace viaduct::adi_test {

using Bytes = std::vector<unsigned char>;

// One packet that is right, and the parts of it that a test makes wrong before it goes out. Only what the
// named packet has is looked at.
struct WirePacket {
    enum class Kind {
        eager,
        first,
        next,
        request,
        reply,
        data,
        written,
        read,
        taken_back,
        noop,
        closing,
        unknown
    };
    Kind kind = Kind::eager;
    int sequence = 0;  // of packets that cost credit: 0 for the first one
    uint32_t source = 1;
    uint16_t credit = 0;
    uint8_t noops = 0;
    int tag = 0;
    uint64_t length = 0;    // of the whole message
    uint32_t here = 8;      // bytes of data in the packet
    uint32_t claimed = 8;   // and how many it says
    uint32_t number = 0;    // of a packet in its message; data: where it begins
    uint64_t first = 0;        // in a reply: where the sender's part begins
    uint32_t pieces = 0;       // that a list has, which does not follow
    uint64_t request = 77;  // the name it uses
    uint32_t protocol = 0;  // how a long message is to be moved
    uint64_t address = 0;   // where its sender's buffer lies
    uint32_t handle = 0;
    size_t cut = 0;  // bytes that are missing at its end
};

// What a packet from the other side says.
struct WireNews {
    WirePacket::Kind kind;
    int sequence;
    uint16_t credit;
    uint64_t length;
    uint32_t announced;  // receives that its packets will take
    uint32_t bytes;      // of the packet
    int tag;
    uint64_t request;  // the sender's name for it
    uint64_t receive;  // in a reply: the receiver's
    uint32_t protocol;
    uint64_t address;
    uint32_t handle;
};

// Puts it on the connection to `other`, past this side's credits and sequence.
void put_on_wire(Engine& e, int other, const WirePacket& packet);
// The next packet that has come from `other`; false: none has. Its receive is not posted again.
bool take_off_wire(Engine& e, int other, WireNews* news);
// How many bytes of data a packet of a long message carries.
size_t data_per_packet();

}  // namespace viaduct::adi_test
