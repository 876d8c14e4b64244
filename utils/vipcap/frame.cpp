// SPDX-License-Identifier: BSD-2-Clause
// Where frames are in packets.
#include "utils/vipcap/frame.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "utils/vipcap/crc32c.hpp"

namespace viaduct::vipcap {

namespace {

constexpr size_t kEthernetHeader = 14, kTag = 4, kIp = 20, kUdp = 8;
constexpr size_t kVersionAnswer = 72, kCheckAt = 36, kVersionCheckAt = 4;
constexpr uint16_t kIpv4 = 0x0800;
constexpr uint8_t kVersion = 2;

uint16_t number16(Bytes b, size_t at) { return static_cast<uint16_t>(b[at] << 8 | b[at + 1]); }
uint32_t number32(Bytes b, size_t at) { return uint32_t{number16(b, at)} << 16 | number16(b, at + 2); }

bool check_holds(Bytes frame, size_t check_at) {
    const uint8_t zeros[4] = {};
    Crc32c crc;
    crc.add(frame.first(check_at));
    crc.add(zeros);
    crc.add(frame.subspan(check_at + 4));
    return crc.value() == number32(frame, check_at);
}

// What lies behind a header of Ethernet or UDP. `sure`: nothing but frames comes there.
void take_frames(Bytes data, const Frame& about, bool sure, std::vector<Frame>* out) {
    while (data.size() >= kHeaderBytes) {
        Frame f = about;
        f.version_answer = data[0] == 0 && data[1] == 1 && data.size() >= kVersionAnswer;
        const size_t bytes = f.version_answer ? kVersionAnswer : kHeaderBytes + number16(data, 32);
        if (!f.version_answer &&
            (data[0] != kVersion || bytes > data.size() || (!sure && name_of_kind(data[1]) == nullptr)))
            return;
        f.bytes = data.first(bytes);
        f.damaged = !check_holds(f.bytes, f.version_answer ? kVersionCheckAt : kCheckAt);
        if (f.damaged && (f.version_answer || !sure)) return;
        out->push_back(f);
        data = data.subspan(bytes);
    }
}

}  // namespace

bool Address::same_host(const Address& other) const {
    return udp == other.udp && std::equal(bytes.begin(), bytes.begin() + (udp ? 4 : 6), other.bytes.begin());
}

std::string text_of(const Address& a) {
    const auto& b = a.bytes;
    if (a.udp) return fmt::format("{}.{}.{}.{}:{}", b[0], b[1], b[2], b[3], b[4] << 8 | b[5]);
    return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", b[0], b[1], b[2], b[3], b[4], b[5]);
}

std::vector<Frame> frames_in(Bytes packet, double seconds) {
    std::vector<Frame> all;
    if (packet.size() < kEthernetHeader) return all;
    Frame about;
    about.seconds = seconds;
    uint16_t type = number16(packet, 12);
    Bytes behind = packet.subspan(kEthernetHeader);
    for (; (type == kVlan || type == kOuterVlan) && behind.size() >= kTag; behind = behind.subspan(kTag))
        type = number16(behind, 2);
    if (type == kFrameType) {
        std::copy_n(packet.begin(), 6, about.to.bytes.begin());
        std::copy_n(packet.begin() + 6, 6, about.from.bytes.begin());
        take_frames(behind, about, true, &all);
        return all;
    }
    if (type != kIpv4 || behind.size() < kIp) return all;
    const size_t ip = (behind[0] & 15u) * 4, total = number16(behind, 2);
    // Not a later fragment; and UDP is whole.
    if (behind[0] >> 4 != 4 || ip < kIp || behind[9] != kUdpProtocol || (number16(behind, 6) & 0x3FFF) != 0 ||
        behind.size() < ip + kUdp)
        return all;
    const Bytes udp = behind.subspan(ip, (total > ip + kUdp && total <= behind.size() ? total : behind.size()) - ip);
    about.from.udp = about.to.udp = true;
    std::copy_n(behind.begin() + 12, 4, about.from.bytes.begin());
    std::copy_n(behind.begin() + 16, 4, about.to.bytes.begin());
    std::copy_n(udp.begin(), 2, about.from.bytes.begin() + 4);
    std::copy_n(udp.begin() + 2, 2, about.to.bytes.begin() + 4);
    const bool sure = number16(udp, 0) == kUdpPort || number16(udp, 2) == kUdpPort;
    take_frames(udp.subspan(kUdp), about, sure, &all);
    return all;
}

}  // namespace viaduct::vipcap
