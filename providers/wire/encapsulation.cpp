// SPDX-License-Identifier: BSD-2-Clause
#include "providers/wire/encapsulation.hpp"

#include <cstring>

#include "providers/wire/bytes.hpp"

namespace viaduct::wire {

namespace {

constexpr uint16_t kIpv4 = 0x0800;
constexpr uint8_t kUdpProtocol = 17;
constexpr uint32_t kEthernet = 14, kIp = 20, kUdp = 8;

uint16_t ip_checksum(const std::byte* header) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < kIp; i += 2) sum += load16(header + i);
    sum = (sum & 0xFFFF) + (sum >> 16);
    sum += sum >> 16;
    return static_cast<uint16_t>(~sum);
}

}  // namespace

NicAddress udp_address(uint32_t ipv4, uint16_t port) {
    NicAddress a;
    for (int i = 0; i < 4; ++i) a.bytes[i] = static_cast<uint8_t>(ipv4 >> (24 - 8 * i));
    a.bytes[4] = static_cast<uint8_t>(port >> 8);
    a.bytes[5] = static_cast<uint8_t>(port);
    return a;
}

void Udp::write(std::byte* at, const NicAddress& to, uint32_t frame_bytes) const {
    detail::write_ethernet(at, next_hop, own_mac, kIpv4);
    std::byte* const ip = at + kEthernet;
    store16(ip, 0x4500);
    store16(ip + 2, static_cast<uint16_t>(kIp + kUdp + frame_bytes));
    store16(ip + 4, 0);
    store16(ip + 6, 0x4000);  // never fragmented: the path MTU is found by what arrives
    store8(ip + 8, 64);
    store8(ip + 9, kUdpProtocol);
    store16(ip + 10, 0);
    std::memcpy(ip + 12, own.bytes, 4);
    std::memcpy(ip + 16, to.bytes, 4);
    store16(ip + 10, ip_checksum(ip));
    std::byte* const udp = ip + kIp;
    std::memcpy(udp, own.bytes + 4, 2);
    std::memcpy(udp + 2, to.bytes + 4, 2);
    store16(udp + 4, static_cast<uint16_t>(kUdp + frame_bytes));
    store16(udp + 6, 0);  // no checksum: the frame has a better one
}

bool Udp::read(std::span<const std::byte> packet, NicAddress* from, std::span<const std::byte>* frame) const {
    if (packet.size() < kBytes || load16(packet.data() + 12) != kIpv4) return false;
    const std::byte* const ip = packet.data() + kEthernet;
    const std::byte* const udp = ip + kIp;
    const uint32_t total = load16(ip + 2);
    const bool plain = load8(ip) == 0x45 && load8(ip + 9) == kUdpProtocol && (load16(ip + 6) & 0x3FFF) == 0;
    if (!plain || total < kIp + kUdp || total > packet.size() - kEthernet) return false;
    if (load16(udp + 4) != total - kIp) return false;
    if (std::memcmp(ip + 16, own.bytes, 4) != 0 || std::memcmp(udp + 2, own.bytes + 4, 2) != 0) return false;
    std::memcpy(from->bytes, ip + 12, 4);
    std::memcpy(from->bytes + 4, udp, 2);
    *frame = packet.subspan(kBytes, total - kIp - kUdp);
    return true;
}

}  // namespace viaduct::wire
