// SPDX-License-Identifier: BSD-2-Clause
// What a frame of VI-over-packets looks like: this header and docs/wire-format.md are the specification. A
// frame is a header of 40 bytes, the fields of its kind, payload. Every number is big-endian. Used by nodes,
// tests and tools.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "viaduct/types.hpp"

namespace viaduct::wire {

inline constexpr uint8_t kVersion = 2;
inline constexpr uint32_t kHeaderBytes = 40;
inline constexpr uint32_t kKindAt = 1;         // where a header has the kind
inline constexpr uint32_t kSourceAt = 8;       // where a header has the link id of its sender
inline constexpr uint32_t kPassAt = 24;        // and the pass
inline constexpr uint32_t kMinFrame = 576;     // the smallest path a connection works over
inline constexpr uint32_t kMaxFrame = 16'384;  // and the largest frame that is ever sent
inline constexpr uint32_t kWindow = 256;  // frames that a receiver holds early, and bits of a selective acknowledgement
// Sequenced frames under way. No more than a receiver holds early: what is beyond is dropped whenever one before it is
// lost, and a connection over udp did not get over a cable that was cut for 0.2 s.
inline constexpr uint32_t kMostInFlight = kWindow;

enum class Kind : uint8_t {
    // connecting
    request = 1,       // Connect: client/server, sent by the requester
    peer_request = 2,  // Connect: peer to peer, sent by both
    accept = 3,        // Connect: the answer that makes the connection
    confirm = 4,       // Arrived: the requester has seen the accept
    reject = 5,        // Answer: the other side said no, or the attributes differ
    no_match = 6,      // Answer: no program waits there now
    pending = 7,       // Answer: a program has the request and has not decided yet
    withdraw = 8,      // Answer: the requester waits no longer
    prove = 9,         // Prove: the request has to come again with this cookie
    // ending and keeping alive
    disconnect = 16,    // Ending: with a reason; repeated until answered
    disconnected = 17,  // nothing more: the answer to a disconnect
    reset = 18,         // nothing more: there is no such connection here
    keep_alive = 19,    // Selective: a sign of life
    acknowledge = 20,   // Selective
    // sequenced
    send = 32,            // Message, payload
    write = 33,           // Message, Target, payload
    read_request = 34,    // ReadRequest
    read_data = 35,       // ReadData, payload
    atomic_request = 36,  // AtomicRequest
    atomic_data = 37,     // AtomicData
};

const char* name_of(Kind);
inline bool is_connecting(Kind kind) { return static_cast<uint8_t>(kind) < 16; }
inline bool is_sequenced(Kind kind) { return static_cast<uint8_t>(kind) >= 32; }

enum Flag : uint16_t {
    kFlagImmediate = 1u << 0,  // the message has immediate data
    kFlagLast = 1u << 1,       // last fragment of its message or read
    kFlagAckNow = 1u << 2,     // the sender has nothing more to send for now
    kFlagAgain = 1u << 3,      // a retransmission
    kFlagTagged = 1u << 4,  // the pass is a tag: the sender has a key
    kFlagsKnown = 31,
};

// At byte:  0 version, 1 kind, 2 flags(2), 4 destination(4), 8 source(4), 12 sequence(4), 16 acknowledge(4),
//          20 credit(4), 24 pass(8), 32 length(2), 34 zero(2), 36 check(4).
struct Header {
    Kind kind{};
    uint16_t flags = 0;
    uint32_t destination = 0;  // connection id at the receiver; 0 before it is known
    uint32_t source = 0;       // connection id at the sender
    uint32_t sequence = 0;     // of a sequenced frame; else the next one to be sent
    uint32_t acknowledge = 0;  // every sequenced frame before it has been taken
    uint32_t credit = 0;       // receives posted since the connection began
    uint64_t pass = 0;         // of the link it is for; of its sender in disconnected and reset; or a tag
    uint16_t length = 0;       // bytes after the header
};

// request, peer_request, accept; 192 bytes, then zeros up to the size whose path is being tried.
struct Connect {
    uint64_t nonce = 0;      // 0: names the attempt
    uint32_t sequence = 0;   // 8: of its first sequenced frame
    uint16_t max_frame = 0;  // 12: the largest frame it takes
    uint16_t arrived = 0;    // 14: accept: size of the largest request that came here
    ViTraits
        traits;  // 16 reliability(2), 18 rdma(1), 19 flags(1), 20 window(4), 24 max_transfer(8), 32 qos(8)
    bool attended = false;     // bit 0 of the flags: if its program dies, another process reports it
    uint32_t window = 0;       //
    EndAddress local, remote;  // 40 and 112: host(6), discriminator length(2), discriminator(64)
    uint64_t pass = 0;         // 184: what frames to the sender's link have to show
    uint64_t cookie = 0;       // 192, behind the fields: request: of the last prove; 0, or a shorter frame: none
};
inline constexpr uint32_t kConnectBytes = 192;
inline constexpr uint32_t kConnectPassAt = 184;
inline constexpr uint32_t kCookieBytes = 8;

// reject, no_match, pending, confirm, withdraw; 16 bytes.
struct Answer {
    uint64_t nonce = 0;    // 0: of the request (confirm: of the accept)
    uint16_t reason = 0;   // 8: Status
    uint16_t arrived = 0;  // 10: size of the largest frame that came here, 12 zero(4)
};
inline constexpr uint32_t kAnswerBytes = 16;

// prove; 24 bytes, the first 16 as in Answer.
struct Prove {
    uint64_t nonce = 0;    // 0: of the request, 8 zero(2)
    uint16_t arrived = 0;  // 10: size of the request that came here, 12 zero(4)
    uint64_t cookie = 0;   // 16
};
inline constexpr uint32_t kProveBytes = 24;

// acknowledge, keep_alive; 32 bytes: bit i (from the highest of byte 0) says that frame acknowledge + 1 + i
// is here.
struct Selective {
    uint64_t bits[kWindow / 64] = {};
    bool has(uint32_t i) const { return (bits[i / 64] >> (63 - i % 64) & 1) != 0; }
    void set(uint32_t i) { bits[i / 64] |= uint64_t{1} << (63 - i % 64); }
};
inline constexpr uint32_t kSelectiveBytes = kWindow / 8;

// disconnect; 8 bytes, and behind them a Finding or nothing (finding.hpp).
enum class Reason : uint16_t {
    disconnected = 0,   // VipDisconnect, or the process left in good order
    no_receive = 1,     // message `message` found no receive posted
    bad_receive = 2,    // its receive was malformed, protected or too short
    not_permitted = 3,  // an RDMA or atomic target was refused
    protocol = 4,       // an impossible frame
    gave_up = 5,        // no acknowledgement in time
    broken = 6,         // the sender's own connection broke for another reason
};
struct Ending {
    Reason reason = Reason::disconnected;  // 0; 2 zero(2)
    uint32_t message = 0;                  // 4
};
inline constexpr uint32_t kEndingBytes = 8;

// send, write; 16 bytes.
struct Message {
    uint32_t number = 0;  // of the operation in its direction, from 0
    uint32_t offset = 0;
    uint32_t total = 0;
    uint32_t immediate = 0;
};
inline constexpr uint32_t kMessageBytes = 16;

// write, after Message; 16 bytes. Of the first byte of the message.
struct Target {
    uint64_t address = 0;
    uint32_t handle = 0;  // 12 zero(4)
};
inline constexpr uint32_t kTargetBytes = 16;

struct ReadRequest {  // 24 bytes
    uint64_t address = 0;
    uint32_t handle = 0;
    uint32_t total = 0;
    uint32_t number = 0;  // 20 zero(4)
};
inline constexpr uint32_t kReadRequestBytes = 24;

struct ReadData {  // 12 bytes
    uint32_t number = 0;
    uint32_t offset = 0;
    uint32_t total = 0;
};
inline constexpr uint32_t kReadDataBytes = 12;

struct AtomicRequest {  // 40 bytes
    uint64_t address = 0;
    uint32_t handle = 0;
    uint32_t number = 0;
    uint64_t operand = 0;   // added, or swapped in
    uint64_t compare = 0;   // compare-swap only
    uint8_t operation = 0;  // 32: 1 fetch-add, 2 compare-swap
    uint8_t width = 0;      // 33: 4 or 8 bytes; 34 zero(6)
};
inline constexpr uint32_t kAtomicRequestBytes = 40;

struct AtomicData {  // 16 bytes
    uint32_t number = 0;
    uint32_t reserved = 0;
    uint64_t value = 0;  // what was there before
};
inline constexpr uint32_t kAtomicDataBytes = 16;

// Bytes of fields in a frame of that kind: payload begins behind them. kNoSuchKind: there is none.
inline constexpr uint32_t kNoSuchKind = UINT8_MAX;
namespace detail {
inline constexpr auto kFieldBytes = [] {
    std::array<uint8_t, 256> bytes;
    bytes.fill(kNoSuchKind);
    const auto set = [&](std::initializer_list<Kind> kinds, uint32_t n) {
        for (const Kind kind : kinds) bytes[static_cast<uint8_t>(kind)] = static_cast<uint8_t>(n);
    };
    set({Kind::request, Kind::peer_request, Kind::accept}, kConnectBytes);
    set({Kind::confirm, Kind::reject, Kind::no_match, Kind::pending, Kind::withdraw}, kAnswerBytes);
    set({Kind::prove}, kProveBytes);
    set({Kind::disconnect}, kEndingBytes);
    set({Kind::disconnected, Kind::reset}, 0);
    set({Kind::keep_alive, Kind::acknowledge}, kSelectiveBytes);
    set({Kind::send}, kMessageBytes);
    set({Kind::write}, kMessageBytes + kTargetBytes);
    set({Kind::read_request}, kReadRequestBytes);
    set({Kind::read_data}, kReadDataBytes);
    set({Kind::atomic_request}, kAtomicRequestBytes);
    set({Kind::atomic_data}, kAtomicDataBytes);
    return bytes;
}();
}  // namespace detail
inline uint32_t field_bytes(Kind kind) { return detail::kFieldBytes[static_cast<uint8_t>(kind)]; }

// ---- reading

// Why bytes are no frame.
enum class Flaw : uint8_t { none, too_short, version, kind, length, check };

struct Frame {
    Header header;
    const std::byte* fields = nullptr;  // header.length bytes: the fields of its kind and the payload
    uint32_t bytes = 0;                 // header included
};

// `bytes` may be followed by padding of the medium. Fields of the kind are long enough when it returns
// Flaw::none. With Flaw::check the header is what has arrived, true or not.
Flaw read_frame(std::span<const std::byte> bytes, Frame* out);

Flaw read_connect(const Frame&, Connect* out);  // Flaw::length when a discriminator is too long
Answer read_answer(const Frame&);
Prove read_prove(const Frame&);
Selective read_selective(const Frame&);
Ending read_ending(const Frame&);
Message read_message(const Frame&);
Target read_target(const Frame&);
ReadRequest read_read_request(const Frame&);
ReadData read_read_data(const Frame&);
AtomicRequest read_atomic_request(const Frame&);
AtomicData read_atomic_data(const Frame&);

inline const std::byte* payload_of(const Frame& f) { return f.fields + field_bytes(f.header.kind); }
inline uint32_t payload_bytes(const Frame& f) { return f.header.length - field_bytes(f.header.kind); }

// ---- writing: fields and payload first, from at + kHeaderBytes on, then seal.

void write_connect(std::byte* to, const Connect&);  // kConnectBytes, without the cookie
void write_cookie(std::byte* connect, uint64_t cookie);  // behind them
void write_answer(std::byte* to, const Answer&);
void write_prove(std::byte* to, const Prove&);
void write_selective(std::byte* to, const Selective&);
void write_ending(std::byte* to, const Ending&);
void write_message(std::byte* to, const Message&);
void write_target(std::byte* to, const Target&);
void write_read_request(std::byte* to, const ReadRequest&);
void write_read_data(std::byte* to, const ReadData&);
void write_atomic_request(std::byte* to, const AtomicRequest&);
void write_atomic_data(std::byte* to, const AtomicData&);

// Memory that the end of a frame's payload is sent from.
struct Piece {
    const std::byte* at;
    uint32_t bytes;
};
inline constexpr uint32_t kMostPieces = 4;  // of one frame

// Writes the header and the check over header.length bytes of fields and payload; the last of them lie in
// `tail`.
void seal(std::byte* frame, const Header&, std::span<const Piece> tail = {});

}  // namespace viaduct::wire
