// SPDX-License-Identifier: BSD-2-Clause
#include "utils/doctor/neighbours.hpp"

#include <fmt/format.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <sstream>

#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"
#include "core/shm/fd.hpp"
#include "utils/doctor/channel.hpp"

namespace viaduct::doctor {

namespace {

constexpr int kQuestions = 2;

// RFC 826, for IPv4 over Ethernet.
struct Arp {
    uint16_t hardware = htons(1), protocol = htons(ETH_P_IP);
    uint8_t hardware_bytes = 6, protocol_bytes = 4;
    uint16_t operation = htons(1);
    std::array<uint8_t, 6> sender_mac{};
    std::array<uint8_t, 4> sender_ip{};  // zeros: a probe (RFC 5227), which changes no table
    std::array<uint8_t, 6> target_mac{};
    std::array<uint8_t, 4> target_ip{};
};
static_assert(sizeof(Arp) == 28);

std::string text_of(const std::array<uint8_t, 6>& mac) {
    return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
}

}  // namespace

Neighbour neighbour_at(const in_addr& ip) {
    std::ifstream table("/proc/net/arp");
    const std::string wanted = text_of(ip);
    for (std::string line; std::getline(table, line);) {
        std::istringstream words(line);
        std::string address, type, flags;
        words >> address >> type >> flags;
        if (address != wanted) continue;
        return (std::strtoul(flags.c_str(), nullptr, 16) & ATF_COM) != 0 ? Neighbour::present : Neighbour::silent;
    }
    return Neighbour::unknown;
}

Owners owners_of(const in_addr& ip, const std::string& interface) {
    Owners result;
    const Fd socket(::socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(ETH_P_ARP)));
    ifreq r{};
    interface.copy(r.ifr_name, sizeof r.ifr_name - 1);
    if (!socket.valid() || ::ioctl(socket.get(), SIOCGIFHWADDR, &r) != 0 || r.ifr_hwaddr.sa_family != ARPHRD_ETHER)
        return result;
    Arp question;
    std::memcpy(question.sender_mac.data(), r.ifr_hwaddr.sa_data, 6);
    std::memcpy(question.target_ip.data(), &ip.s_addr, 4);
    sockaddr_ll all{};
    all.sll_family = AF_PACKET;
    all.sll_protocol = htons(ETH_P_ARP);
    all.sll_ifindex = static_cast<int>(::if_nametoindex(interface.c_str()));
    all.sll_halen = 6;
    std::memset(all.sll_addr, 0xFF, 6);
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&all), sizeof all) != 0) return result;
    result.asked = true;
    for (int i = 0; i < kQuestions; ++i) {
        ::sendto(socket.get(), &question, sizeof question, 0, reinterpret_cast<const sockaddr*>(&all), sizeof all);
        const int64_t until = now_ns() + limit_ns(TimeLimit::doctor_neighbours);
        for (int64_t left = until - now_ns(); left > 0; left = until - now_ns()) {
            pollfd p{socket.get(), POLLIN, 0};
            ::poll(&p, 1, static_cast<int>(left / 1'000'000) + 1);
            Arp answer;
            if (::recv(socket.get(), &answer, sizeof answer, 0) != static_cast<ssize_t>(sizeof answer)) continue;
            if (answer.operation != htons(2) || answer.sender_ip != question.target_ip ||
                answer.sender_mac == question.sender_mac)
                continue;
            const std::string mac = text_of(answer.sender_mac);
            if (std::find(result.macs.begin(), result.macs.end(), mac) == result.macs.end()) result.macs.push_back(mac);
        }
    }
    return result;
}

}  // namespace viaduct::doctor
