// SPDX-License-Identifier: BSD-2-Clause
#include "utils/vipcap/capture.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>

#include <cerrno>
#include <cstring>
#include <iterator>
#include <vector>

#include "core/shm/fd.hpp"
#include "utils/common/error.hpp"
#include "utils/common/stop.hpp"
#include "utils/vipcap/pcap.hpp"

namespace viaduct::vipcap {

namespace {

constexpr int kSliceMs = 100;
constexpr int kRoom = 16 << 20;

// Type of Ethernet ours, or IPv4 with protocol UDP, or anything with a tag of a VLAN.
void attach_filter(int socket) {
    sock_filter program[] = {
        {BPF_LD | BPF_H | BPF_ABS, 0, 0, 12},
        {BPF_JMP | BPF_JEQ | BPF_K, 5, 0, kFrameType},
        {BPF_JMP | BPF_JEQ | BPF_K, 4, 0, kVlan},
        {BPF_JMP | BPF_JEQ | BPF_K, 3, 0, kOuterVlan},
        {BPF_JMP | BPF_JEQ | BPF_K, 0, 3, ETH_P_IP},
        {BPF_LD | BPF_B | BPF_ABS, 0, 0, 23},
        {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, kUdpProtocol},
        {BPF_RET | BPF_K, 0, 0, kLongestPacket},
        {BPF_RET | BPF_K, 0, 0, 0},
    };
    const sock_fprog filter{std::size(program), program};
    ::setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter);
}

Fd open_socket(const std::string& interface) {
    Fd socket(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.valid())
        throw tools::ToolError(
            fmt::format("no packet socket: {}; run it as root, or give it CAP_NET_RAW", std::strerror(errno)));
    sockaddr_ll at{};
    at.sll_family = AF_PACKET;
    at.sll_protocol = htons(ETH_P_ALL);
    at.sll_ifindex = static_cast<int>(::if_nametoindex(interface.c_str()));
    if (at.sll_ifindex == 0) throw tools::ToolError(fmt::format("there is no interface {}", interface));
    attach_filter(socket.get());
    ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUF, &kRoom, sizeof kRoom);
    const int on = 1;
    ::setsockopt(socket.get(), SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0)
        throw tools::ToolError(fmt::format("{}: {}", interface, std::strerror(errno)));
    return socket;
}

int64_t ns_of(const timespec& t) { return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec; }

// When the kernel has seen the packet; as it may have waited since, the time at which it is read would be another one.
int64_t time_of(msghdr* m) {
    timespec t{};
    ::clock_gettime(CLOCK_REALTIME, &t);
    for (cmsghdr* c = CMSG_FIRSTHDR(m); c != nullptr; c = CMSG_NXTHDR(m, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) std::memcpy(&t, CMSG_DATA(c), sizeof t);
    return ns_of(t);
}

}  // namespace

uint32_t capture(const std::string& interface, const std::function<void()>& ready,
                 const std::function<bool(Bytes packet, int64_t ns_since_1970)>& take) {
    const Fd socket = open_socket(interface);
    ready();
    std::vector<uint8_t> room(kLongestPacket);
    for (bool more = true; more && !tools::stopped();) {
        alignas(cmsghdr) char told[CMSG_SPACE(sizeof(timespec))];
        iovec data{room.data(), room.size()};
        msghdr message{};
        message.msg_iov = &data;
        message.msg_iovlen = 1;
        message.msg_control = told;
        message.msg_controllen = sizeof told;
        const ssize_t n = ::recvmsg(socket.get(), &message, 0);
        if (n < 0) {
            pollfd p{socket.get(), POLLIN, 0};
            ::poll(&p, 1, kSliceMs);
            continue;
        }
        more = take({room.data(), static_cast<size_t>(n)}, time_of(&message));
    }
    tpacket_stats counted{};
    socklen_t bytes = sizeof counted;
    ::getsockopt(socket.get(), SOL_PACKET, PACKET_STATISTICS, &counted, &bytes);
    return counted.tp_drops;
}

}  // namespace viaduct::vipcap
