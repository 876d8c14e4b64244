// SPDX-License-Identifier: BSD-2-Clause
#include "providers/udp/daemon/dead_ports.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "providers/udp/address.hpp"
#include "providers/wire/bytes.hpp"
#include "providers/wire/encapsulation.hpp"
#include "providers/wire/no_link_answer.hpp"

namespace viaduct::udp {

namespace {

constexpr uint16_t kFirstUnprivilegedPort = 1024;
constexpr int kFramesPerPort = 64;  // that one look answers

bool is_tagged(std::span<const std::byte> frame) {
    return frame.size() >= wire::kHeaderBytes && wire::load8(frame.data()) == wire::kVersion &&
           (wire::load16(frame.data() + 2) & wire::kFlagTagged) != 0;
}

}  // namespace

void DeadPorts::add(uid_t user, const NicAddress& data, int64_t now) {
    const auto of_user = std::count_if(ports_.begin(), ports_.end(), [&](const auto& p) { return p.user == user; });
    if (ports_.size() == kMost || static_cast<size_t>(of_user) == kMostOfUser || !wire::is_same_ipv4(data, nic_) ||
        ntohs(to_socket_address(data).sin_port) < kFirstUnprivilegedPort)
        return;
    DeadPort& port = ports_.emplace_back();
    port.user = user;
    port.address = data;
    port.since = now;
    try_to_bind(port, now);
}

void DeadPorts::try_to_bind(DeadPort& port, int64_t now) {
    Fd socket(above_stdio(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
    const sockaddr_in address = to_socket_address(port.address);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = subject_;
    if (!socket.valid() || ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::epoll_ctl(epoll_, EPOLL_CTL_ADD, socket.get(), &event) != 0)
        return;
    port.socket = std::move(socket);
    port.since = now;
}

void DeadPorts::look(int64_t now) {
    for (DeadPort& port : ports_) {
        if (!port.socket.valid()) try_to_bind(port, now);
        port.over = port.over || now - port.since > (port.socket.valid() ? kKept : kTriedFor);
    }
    std::erase_if(ports_, [](const DeadPort& port) { return port.over; });
}

bool DeadPorts::is_trying() const {
    return std::any_of(ports_.begin(), ports_.end(), [](const auto& port) { return !port.socket.valid(); });
}

void DeadPorts::take_frames(int64_t now) {
    for (DeadPort& port : ports_)
        if (port.socket.valid()) answer_frames(port, now);
    look(now);
}

void DeadPorts::answer_frames(DeadPort& port, int64_t now) {
    std::byte frame[wire::kMaxFrame];
    for (int i = 0; i < kFramesPerPort && !port.over; ++i) {
        sockaddr_in from{};
        socklen_t bytes = sizeof from;
        const ssize_t n = ::recvfrom(port.socket.get(), frame, sizeof frame, 0, reinterpret_cast<sockaddr*>(&from),
                                     &bytes);
        if (n < 0) {
            if (errno == EAGAIN || errno == EWOULDBLOCK) return;
            continue;  // what an earlier answer met on its way
        }
        const std::span<const std::byte> came(frame, static_cast<size_t>(n));
        port.over = is_tagged(came);
        std::byte answer[wire::kHeaderBytes];
        if (port.over || !wire::make_no_link_answer(came, answer) || !port.answers.allows(now)) continue;
        ::sendto(port.socket.get(), answer, sizeof answer, MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&from),
                 sizeof from);
    }
}

}  // namespace viaduct::udp
