// SPDX-License-Identifier: BSD-2-Clause
#include "providers/udp/daemon/socket_owner.hpp"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/log/log.hpp"
#include "providers/udp/address.hpp"

namespace viaduct::udp {

namespace {

constexpr int kMostAnswers = 16;  // to earlier questions, before the one to this

struct Question {
    nlmsghdr head;
    inet_diag_req_v2 body;
};

// Any user may bind an address of another host (IP_FREEBIND); the kernel reports the owner of such a socket too. Where
// the bind here fails for another reason, descriptors for one, the address counts as one of this host: its user's
// programs alone get the request.
bool is_of_this_host(sockaddr_in address) {
    address.sin_port = 0;
    const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    return ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
           errno != EADDRNOTAVAIL;
}

}  // namespace

SocketOwner::SocketOwner()
    : netlink_(above_stdio(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG))) {
    if (!finds_own_socket())
        VIADUCT_LOG(warn, "udpd",
                    "the kernel does not report the owners of UDP sockets (sock_diag, udp_diag): a program of one user "
                    "may get a request of another user's program");
}

bool SocketOwner::finds_own_socket() {
    sockaddr_in here{};
    here.sin_family = AF_INET;
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof here;
    const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    return socket.valid() && ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&here), sizeof here) == 0 &&
           ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&here), &bytes) == 0 &&
           user_of(from_socket_address(here)) == ::geteuid();
}

std::optional<uid_t> SocketOwner::user_of(const NicAddress& from) {
    const sockaddr_in address = to_socket_address(from);
    Question q{};
    q.head.nlmsg_len = sizeof q;
    q.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
    q.head.nlmsg_flags = NLM_F_REQUEST;
    q.head.nlmsg_seq = ++sequence_;
    q.body.sdiag_family = AF_INET;
    q.body.sdiag_protocol = IPPROTO_UDP;
    q.body.idiag_states = ~0u;
    // The kernel finds the socket that a datagram to this address would reach.
    q.body.id.idiag_dport = address.sin_port;
    q.body.id.idiag_dst[0] = address.sin_addr.s_addr;
    q.body.id.idiag_cookie[0] = q.body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    if (!netlink_.valid() || ::send(netlink_.get(), &q, sizeof q, 0) != static_cast<ssize_t>(sizeof q)) return {};
    alignas(nlmsghdr) char buffer[4096];
    for (int i = 0; i < kMostAnswers; ++i) {
        const ssize_t got = ::recv(netlink_.get(), buffer, sizeof buffer, 0);
        if (got < static_cast<ssize_t>(NLMSG_LENGTH(0))) return {};
        nlmsghdr head;
        std::memcpy(&head, buffer, sizeof head);
        if (head.nlmsg_seq != sequence_) continue;
        inet_diag_msg found;
        if (head.nlmsg_type != SOCK_DIAG_BY_FAMILY || got < static_cast<ssize_t>(NLMSG_LENGTH(sizeof found))) return {};
        std::memcpy(&found, buffer + NLMSG_LENGTH(0), sizeof found);
        const bool same = found.id.idiag_sport == address.sin_port && found.id.idiag_src[0] == address.sin_addr.s_addr;
        return same && is_of_this_host(address) ? std::optional<uid_t>(found.idiag_uid) : std::nullopt;
    }
    return {};
}

}  // namespace viaduct::udp
