// SPDX-License-Identifier: BSD-2-Clause
// A frame of VI over packets as it is shown: found in a packet of Ethernet, and told in the words of the dissector
// (providers/wire/dissector/viaduct.lua), by the tables of docs/wire-format.md. What is read is anything that a network
// carries: every length is checked before it is used.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace viaduct::vipcap {

using Bytes = std::span<const uint8_t>;

inline constexpr uint16_t kUdpPort = 4792;
inline constexpr uint16_t kFrameType = 0x88B5, kVlan = 0x8100, kOuterVlan = 0x88A8;  // of Ethernet
inline constexpr uint8_t kUdpProtocol = 17;
inline constexpr size_t kHeaderBytes = 40;

struct Address {
    bool udp = false;
    std::array<uint8_t, 6> bytes{};  // Ethernet; IPv4 and port
    bool operator==(const Address&) const = default;
    bool same_host(const Address& other) const;
};
std::string text_of(const Address&);

struct Frame {
    double seconds = 0;  // since 1970
    Address from, to;
    Bytes bytes;           // header, fields, payload
    bool damaged = false;  // its check does not hold
    bool version_answer = false;

    uint8_t kind() const { return bytes[1]; }
    uint16_t flags() const { return number16(2); }
    uint32_t destination() const { return number32(4); }
    uint32_t source() const { return number32(8); }
    uint32_t sequence() const { return number32(12); }
    uint32_t acknowledge() const { return number32(16); }
    uint16_t number16(size_t at) const { return static_cast<uint16_t>(bytes[at] << 8 | bytes[at + 1]); }
    uint32_t number32(size_t at) const { return uint32_t{number16(at)} << 16 | number16(at + 2); }
};

// The frames in a packet; several, where the kernel had put them together. At another port than 4792 only such a one
// counts whose check holds: other protocols use these ports.
std::vector<Frame> frames_in(Bytes packet, double seconds);

const char* name_of_kind(uint8_t);
bool is_sequenced(uint8_t kind);

struct Field {
    std::string name, value;
};
// Of header and kind, in the order of the dissector.
std::vector<Field> fields_of(const Frame&);
// "send 00010001 > 00020001 seq 7 ack 3, message 2 offset 0 total 64"
std::string summary_of(const Frame&);

}  // namespace viaduct::vipcap
