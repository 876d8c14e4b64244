// SPDX-License-Identifier: BSD-2-Clause
#include "providers/acenic/packet_socket.hpp"

#include <linux/if_packet.h>
#include <net/if.h>
#include <rte_mbuf.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>

#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"
#include "core/log/log.hpp"
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
static_assert(unstretched_ns(TimeLimit::acenic_full) < unstretched_ns(TimeLimit::wire_silence));

}  // namespace

std::unique_ptr<PacketSocket> PacketSocket::open(const std::string& interface) {
    // Of no protocol: nothing is received.
    Fd socket(above_stdio(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
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
    return std::unique_ptr<PacketSocket>(new PacketSocket(std::move(socket), interface));
}

// Whether a frame that the kernel did not take now will not be taken later either. ENOBUFS says two things: that
// the device's queue is full, and that the device has dropped the frame (veth: it is too large for the other
// end). They are told apart by whether a frame of that size has passed before, and by time: a path may shrink.
bool PacketSocket::is_refused(uint32_t bytes, int error) {
    if (error == EAGAIN || error == EINTR) return false;
    if (error == ENOBUFS && bytes <= passed_) {
        const int64_t now = now_ns();
        if (full_since_ == 0) full_since_ = now;
        // A frame that is refused for longer holds the others up no more: peers that wait for them would count as lost.
        if (now - full_since_ < limit_ns(TimeLimit::acenic_full)) return false;
        passed_ = bytes - 1;
        ++lost_.not_taken;
    } else if (error == ENOBUFS || error == EMSGSIZE) {
        if (lost_.too_large++ == 0)
            VIADUCT_LOG(info, "acenic",
                        "%s does not take frames of %u bytes: the MTU here, or at the other end, is smaller",
                        interface_.c_str(), bytes);
    } else {
        ++lost_.other;
    }
    full_since_ = 0;
    return true;
}

uint32_t PacketSocket::send(rte_mbuf* const* frames, uint32_t count) {
    constexpr uint32_t kPieces = 2 + wire::kMostPieces;
    mmsghdr messages[kBurst];
    iovec pieces[kBurst * kPieces];
    // All of the frame is "header": the kernel takes one piece of memory for it, which is the one the
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
        if (sent <= 0) {
            if (!is_refused(frames[done]->pkt_len, errno)) break;
            ++done;  // lost, as on the way
            continue;
        }
        full_since_ = 0;
        for (const uint32_t end = done + static_cast<uint32_t>(sent); done != end; ++done)
            passed_ = std::max(passed_, frames[done]->pkt_len);
    }
    return done;
}

}  // namespace viaduct::acenic
