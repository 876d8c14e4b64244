// SPDX-License-Identifier: BSD-2-Clause
// What a UDP socket with IP_RECVERR reports of its earlier datagrams. Any host can forge an ICMP message. Used by
// PortProbe and Sockets.
#pragma once

#include <linux/errqueue.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <sys/socket.h>

#include <cstring>

namespace viaduct::udp {

// Bytes of control messages for one report.
inline constexpr size_t kReportBytes = CMSG_SPACE(sizeof(sock_extended_err) + sizeof(sockaddr_in));

// Asks the kernel to keep reports for that socket (MSG_ERRQUEUE). False: it does not.
inline bool keep_reports(int socket) {
    const int on = 1;
    return ::setsockopt(socket, IPPROTO_IP, IP_RECVERR, &on, sizeof on) == 0;
}

// Whether a message of the error queue says: no socket has the port that the datagram was sent to.
inline bool is_port_unreachable(const msghdr& m) {
    for (const cmsghdr* c = CMSG_FIRSTHDR(&m); c != nullptr;
         c = CMSG_NXTHDR(const_cast<msghdr*>(&m), const_cast<cmsghdr*>(c))) {
        if (c->cmsg_level != IPPROTO_IP || c->cmsg_type != IP_RECVERR) continue;
        sock_extended_err e;
        std::memcpy(&e, CMSG_DATA(c), sizeof e);
        return e.ee_origin == SO_EE_ORIGIN_ICMP && e.ee_type == ICMP_DEST_UNREACH && e.ee_code == ICMP_PORT_UNREACH;
    }
    return false;
}

}  // namespace viaduct::udp
