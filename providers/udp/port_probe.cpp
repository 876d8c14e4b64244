// SPDX-License-Identifier: BSD-2-Clause
#include "providers/udp/port_probe.hpp"

#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "core/sync/cancellation.hpp"
#include "providers/udp/address.hpp"
#include "providers/udp/icmp_error.hpp"

namespace viaduct::udp {

namespace {

// Of one look: others can send messages without end.
constexpr uint32_t kMostInARow = 256;

// No frame of any version, and too short to be answered for its version: a program that listens drops it in silence.
struct Datagram {
    uint32_t mark = 0;
    wire::LinkId link = 0;
    uint64_t nonce = 0;
    uint32_t number = 0, reserved = 0;
};
static_assert(sizeof(Datagram) == 24);

}  // namespace

bool PortProbe::open() {
    if (socket_.valid()) return true;
    Fd socket(above_stdio(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
    sockaddr_in own = to_socket_address(nic_);
    own.sin_port = 0;
    // What is sent there must not take the room of refusals.
    sock_filter nothing{BPF_RET | BPF_K, 0, 0, 0};
    const sock_fprog filter{1, &nothing};
    if (!socket.valid() || ::setsockopt(socket.get(), SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) != 0 ||
        !keep_reports(socket.get()) ||
        ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0)
        return false;
    socket_ = std::move(socket);
    return true;
}

// A send fails once for each message that has come and has not been taken.
void PortProbe::ask(const NicAddress& to, const wire::Question& q) {
    const CancellationHeldOff inside_hot_calls;
    in_a_row_ = 0;
    if (!open()) return;
    Datagram d;
    d.link = q.link;
    d.nonce = q.nonce;
    d.number = q.number;
    const sockaddr_in there = to_socket_address(to);
    for (int tries = 0; tries < 2; ++tries)
        if (::sendto(socket_.get(), &d, sizeof d, MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&there),
                     sizeof there) >= 0)
            return;
}

bool PortProbe::next_refused(wire::Question* q) {
    if (!socket_.valid()) return false;
    const CancellationHeldOff inside_hot_calls;
    while (in_a_row_ < kMostInARow) {
        Datagram d;
        iovec part{&d, sizeof d};
        alignas(cmsghdr) char control[kReportBytes];
        msghdr m{};
        m.msg_iov = &part;
        m.msg_iovlen = 1;
        m.msg_control = control;
        m.msg_controllen = sizeof control;
        const ssize_t n = ::recvmsg(socket_.get(), &m, MSG_ERRQUEUE | MSG_DONTWAIT);
        if (n < 0) return false;
        ++in_a_row_;
        if (n != sizeof d || d.mark != 0 || !is_port_unreachable(m)) continue;
        *q = {d.link, d.number, d.nonce};
        ++refused_;
        return true;
    }
    return false;
}

}  // namespace viaduct::udp
