// SPDX-License-Identifier: BSD-2-Clause
// What goes around a frame on its medium: plain Ethernet, or Ethernet with IPv4 and UDP so that frames can be
// routed. A UDP socket needs neither. Used by outlets, which leave `kBytes` of room before the frame.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "providers/wire/bytes.hpp"
#include "viaduct/types.hpp"

namespace viaduct::wire {

inline constexpr uint16_t kEtherType = 0x88B5;  // IEEE local experimental
inline constexpr uint16_t kUdpPort = 4792;      // of no service: beside RoCE's

// For UDP a node's address is its IPv4 address and port.
NicAddress udp_address(uint32_t ipv4, uint16_t port);

inline bool is_same_ipv4(const NicAddress& a, const NicAddress& b) { return std::memcmp(a.bytes, b.bytes, 4) == 0; }
// The host that a frame from `from` names as its own: the IPv4 address is what the network says, the port is the
// host's.
inline NicAddress named_host(const NicAddress& from, const NicAddress& named) {
    NicAddress host = named;
    std::memcpy(host.bytes, from.bytes, 4);
    return host;
}

namespace detail {
inline void write_ethernet(std::byte* at, const NicAddress& to, const NicAddress& from, uint16_t type) {
    std::memcpy(at, to.bytes, kNicAddressBytes);
    std::memcpy(at + 6, from.bytes, kNicAddressBytes);
    store16(at + 12, type);
}
}  // namespace detail

struct Ethernet {
    static constexpr uint32_t kBytes = 14;
    NicAddress own;

    void write(std::byte* at, const NicAddress& to, uint32_t) const {
        detail::write_ethernet(at, to, own, kEtherType);
    }
    // False: not ours. The frame may be followed by padding.
    bool read(std::span<const std::byte> packet, NicAddress* from, std::span<const std::byte>* frame) const {
        if (packet.size() < kBytes || load16(packet.data() + 12) != kEtherType) return false;
        if (std::memcmp(packet.data(), own.bytes, kNicAddressBytes) != 0) return false;
        std::memcpy(from->bytes, packet.data() + 6, kNicAddressBytes);
        *frame = packet.subspan(kBytes);
        return true;
    }
};

struct Udp {
    static constexpr uint32_t kBytes = 14 + 20 + 8;
    NicAddress own;  // udp_address
    NicAddress own_mac;
    NicAddress next_hop;  // MAC of the peer, or of the router on the way to all peers

    void write(std::byte* at, const NicAddress& to, uint32_t frame_bytes) const;
    bool read(std::span<const std::byte> packet, NicAddress* from, std::span<const std::byte>* frame) const;
};

}  // namespace viaduct::wire
