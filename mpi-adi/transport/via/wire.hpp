// SPDX-License-Identifier: BSD-2-Clause
// What via packets look like: fixed, little-endian, without padding; requests by name (request_ids.hpp),
// never by address. The version travels in the environment each process publishes. Pure layout; docs/adi.md
// describes it. Sources: adi-facts 2.3, C34, C38, C39.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace viaduct::via {

constexpr uint32_t kWireVersion = 5;

// A number as it lies in a packet: any alignment, lowest byte first.
template <class T>
class Le {
public:
    operator T() const {
        T value;
        std::memcpy(&value, bytes_, sizeof value);
        return swap(value);
    }
    Le& operator=(T value) {
        value = swap(value);
        std::memcpy(bytes_, &value, sizeof value);
        return *this;
    }

private:
    static T swap(T value) {
        if constexpr (std::endian::native == std::endian::big) {
            T turned;
            for (size_t i = 0; i < sizeof value; ++i) {
                reinterpret_cast<unsigned char*>(&turned)[i] =
                    reinterpret_cast<unsigned char*>(&value)[sizeof value - 1 - i];
            }
            return turned;
        }
        return value;
    }
    unsigned char bytes_[sizeof(T)];
};

using Le16 = Le<uint16_t>;
using Le32 = Le<uint32_t>;
using Le64 = Le<uint64_t>;

enum class PacketType : uint8_t {
    eager_start = 1,     // a whole message in one packet
    eager_first = 2,     // first packet of a message of several
    eager_next = 3,      // the following ones, directly behind each other
    long_request = 4,    // envelope of a long message: rendezvous start
    long_reply = 5,      // it is matched, and this is how it shall come
    r3_next = 6,         // data of a long message by packets
    rput_finish = 7,     // all of it has been written into the receiver's memory
    rget_finish = 8,     // all of it has been read from the sender's memory
    cancel_request = 9,  // the sender wants a long message back
    cancel_reply = 10,
    noop = 11,     // credits; costs none itself
    closing = 12,  // nothing more comes; costs no credit
    slots = 13,    // memory that the other side may write packets into (slots.hpp)
    wake = 14,     // there are some, and their reader sleeps
};

// Bits of Header::flags.
constexpr uint8_t kFlagEnvelopesOnly = 0x1;  // unexpected messages fill my memory: no eager data, please
constexpr uint8_t kFlagReady = 0x2;          // ready mode, for eager_start

struct Header {
    PacketType type;
    uint8_t flags;
    Le16 sequence;  // counts packets that cost credit or a slot; 0 in noop and closing
    Le16 credit;    // receives posted anew for the other side since the last packet; 0 in slots, as are the
                    // next two
    uint8_t view;   // credits the sender of this packet has left, 255: that or more (remote_cc)
    uint8_t noops;  // receives for credit-free packets its sender has posted anew, modulo 256
    Le32 source;    // world rank
};
static_assert(sizeof(Header) == 12);

// The compact form of the envelope: a message that is whole needs no names, no packet number, and its length
// is the packet's. With 28 bytes in front, messages up to 20 bytes travel inside one line of the default NIC.
struct EagerStart {
    Header header;
    Le64 context;
    Le32 tag;
    Le32 src_lrank;
};
static_assert(sizeof(EagerStart) == 28);

// How it ends in a slot: the data lies in front. Made of whole words, see post_eager_in_slot().
struct EagerInSlot {
    Le32 unused;
    EagerStart start;
};
static_assert(sizeof(EagerInSlot) == 32);

struct Envelope {
    Le64 context;
    Le32 tag;
    Le32 src_lrank;
    Le32 packet_no;
    Le32 mode;
    Le64 data_length;
    Le64 sreq;
    Le64 rreq;
};
static_assert(sizeof(Envelope) == 48);

struct EagerFirst {
    Header header;
    Envelope envelope;
    Le32 bytes_in_this_packet;
};
static_assert(sizeof(EagerFirst) == 64);

struct EagerNext {
    Header header;
    Le32 packet_no;
};
static_assert(sizeof(EagerNext) == 16);

// both: the receiver reads the beginning while the sender writes the rest; in a request, rget or both as the
// receiver likes.
enum class Rendezvous : uint32_t { r3 = 0, rput = 1, rget = 2, both = 3 };

struct LongRequest {
    Header header;
    Envelope envelope;
    Le64 buffer_address;       // with rget and both: where the data lies; 0 when not registered
    Le32 memhandle;            // 0 when not registered
    Le32 descriptor_required;  // receives that the packets of r3 will take
    Le32 protocol;             // what the sender would like: Rendezvous
    Le32 pieces;               // data with gaps: how many (WirePiece); 0: none, or not told
};
static_assert(sizeof(LongRequest) == 84);

struct LongReply {
    Header header;
    Le64 rreq;
    Le64 sreq;
    Le64 context_id;
    Le32 src_lrank;
    Le32 mode;
    Le32 protocol;        // what the receiver has chosen
    Le64 buffer_address;  // with rput and both: where to write
    Le64 length;          // how much of the message it has room for
    Le32 memhandle;
    Le64 first;   // with both: where the rest begins that the sender writes
    Le32 pieces;  // with rput and gaps: how many (WirePiece)
};
static_assert(sizeof(LongReply) == 80);

// Where data with gaps lies, in its order. The list stands behind the request or the reply when it fits, and
// handle and address there are 0; else these tell where it lies in its owner's memory.
struct WirePiece {
    Le64 address;
    Le64 bytes;
    Le32 memhandle;
};
static_assert(sizeof(WirePiece) == 20);

struct R3Next {
    Header header;
    Le64 rreq;
    Le32 packet_no;
};
static_assert(sizeof(R3Next) == 24);

struct Finish {
    Header header;
    Le64 request;  // rreq in rput_finish, sreq in rget_finish
};
static_assert(sizeof(Finish) == 20);

struct Cancel {
    Header header;
    Le64 sreq;
    Le32 taken_back;  // in the reply
};
static_assert(sizeof(Cancel) == 24);

// Where the slots lie that its sender lends.
struct Slots {
    Header header;
    Le64 address;
    Le32 memhandle;
};
static_assert(sizeof(Slots) == 24);

// Shortest length a packet of a type may have; 0: no such type.
constexpr size_t least_length(PacketType type) {
    switch (type) {
        case PacketType::eager_start:
            return sizeof(EagerStart);
        case PacketType::eager_first:
            return sizeof(EagerFirst);
        case PacketType::eager_next:
            return sizeof(EagerNext);
        case PacketType::long_request:
            return sizeof(LongRequest);
        case PacketType::long_reply:
            return sizeof(LongReply);
        case PacketType::r3_next:
            return sizeof(R3Next);
        case PacketType::rput_finish:
            return sizeof(Finish);
        case PacketType::rget_finish:
            return sizeof(Finish);
        case PacketType::cancel_request:
            return sizeof(Cancel);
        case PacketType::cancel_reply:
            return sizeof(Cancel);
        case PacketType::noop:
            return sizeof(Header);
        case PacketType::closing:
            return sizeof(Header);
        case PacketType::slots:
            return sizeof(Slots);
        case PacketType::wake:
            return sizeof(Header);
    }
    return 0;
}

// Packets that travel without credit and without a place in the sequence.
constexpr bool costs_no_credit(PacketType type) {
    return type == PacketType::noop || type == PacketType::closing;
}

}  // namespace viaduct::via
