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

// What a frame is handed over with, as in <linux/virtio_net.h>, which C++ cannot read.
struct VirtioHeader {
    uint8_t flags, segmentation;
    uint16_t header_bytes, segment_bytes, checksum_start, checksum_offset;
};
static_assert(sizeof(VirtioHeader) == 10);

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
        ::setsockopt(socket.get(), SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on) != 0 ||
        ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0)
        return nullptr;
    if (::setsockopt(socket.get(), SOL_SOCKET, SO_SNDBUFFORCE, &kBuffer, sizeof kBuffer) != 0)
        ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDBUF, &kBuffer, sizeof kBuffer);
    return std::unique_ptr<PacketSocket>(new PacketSocket(std::move(socket)));
}

uint32_t PacketSocket::send(rte_mbuf* const* frames, uint32_t count) {
    constexpr uint32_t kPieces = 2 + wire::kMostPieces;
    mmsghdr messages[kBurst];
    iovec pieces[kBurst * kPieces];
    // All of the frame is "header": the kernel takes one piece of memory for it, which is the one that the
    // frame before has left, and no pages.
    VirtioHeader headers[kBurst];
    iovec* piece = pieces;
    for (uint32_t i = 0; i < count; ++i) {
        headers[i] = {};
        headers[i].header_bytes = static_cast<uint16_t>(frames[i]->pkt_len);
        messages[i] = {};
        messages[i].msg_hdr.msg_iov = piece;
        *piece++ = {&headers[i], sizeof headers[i]};
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
    return done;
}

}  // namespace viaduct::acenic
