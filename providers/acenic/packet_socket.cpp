// SPDX-License-Identifier: BSD-2-Clause
#include "providers/acenic/packet_socket.hpp"

#include <linux/if_packet.h>
#include <net/if.h>
#include <rte_mbuf.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>

#include "providers/wire/format.hpp"

namespace viaduct::acenic {

namespace {

constexpr int kBuffer = 1 << 20;  // two bursts of large frames on their way to a NIC

// The wire takes no more for now; anything else will not be better the next time.
bool is_full(int error) { return error == EAGAIN || error == ENOBUFS || error == EINTR; }

}  // namespace

std::unique_ptr<PacketSocket> PacketSocket::open(const std::string& interface) {
    // Of no protocol: nothing is received.
    Fd socket(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_ll at{};
    at.sll_family = AF_PACKET;
    at.sll_ifindex = static_cast<int>(::if_nametoindex(interface.c_str()));
    const int on = 1;
    if (!socket.valid() || at.sll_ifindex == 0 ||
        ::setsockopt(socket.get(), SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof on) != 0 ||
        ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0)
        return nullptr;
    if (::setsockopt(socket.get(), SOL_SOCKET, SO_SNDBUFFORCE, &kBuffer, sizeof kBuffer) != 0)
        ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDBUF, &kBuffer, sizeof kBuffer);
    return std::unique_ptr<PacketSocket>(new PacketSocket(std::move(socket)));
}

uint32_t PacketSocket::send(rte_mbuf** frames, uint32_t count) {
    constexpr uint32_t kPieces = 1 + wire::kMostPieces;
    mmsghdr messages[kBurst];
    iovec pieces[kBurst * kPieces];
    iovec* piece = pieces;
    for (uint32_t i = 0; i < count; ++i) {
        messages[i] = {};
        messages[i].msg_hdr.msg_iov = piece;
        for (rte_mbuf* part = frames[i]; part != nullptr; part = part->next)
            *piece++ = {rte_pktmbuf_mtod(part, void*), part->data_len};
        messages[i].msg_hdr.msg_iovlen = static_cast<size_t>(piece - messages[i].msg_hdr.msg_iov);
    }
    uint32_t done = 0;
    while (done != count) {
        const int sent = ::sendmmsg(socket_.get(), messages + done, count - done, MSG_DONTWAIT);
        if (sent < 0 && is_full(errno)) break;
        // A frame that the kernel refuses for good is lost, as on the way: the interface is down, or gone.
        done += sent > 0 ? static_cast<uint32_t>(sent) : 1;
    }
    ::rte_pktmbuf_free_bulk(frames, done);
    return done;
}

}  // namespace viaduct::acenic
