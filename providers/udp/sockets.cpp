// SPDX-License-Identifier: BSD-2-Clause
#include "providers/udp/sockets.hpp"

#include <linux/sock_diag.h>
#include <netinet/udp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <utility>

#include "core/log/log.hpp"
#include "core/sync/cancellation.hpp"
#include "providers/udp/address.hpp"
#include "providers/udp/icmp_error.hpp"

#ifndef SO_MEMINFO
#define SO_MEMINFO 55
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

namespace viaduct::udp {

namespace {

constexpr int kBuffer = 8 << 20;
// After so many frames, or trains of them, to a peer it gets a socket of its own.
constexpr uint32_t kEnough = 64;
constexpr uint32_t kLeastCharge = 512;  // bytes of a socket's buffer for a datagram, the kernel's own needs included
constexpr uint32_t kOnTheWay = 16;      // datagrams that the kernel is about to put into the own socket
constexpr uint32_t kReportsAtOnce = 64;  // taken from one socket: other hosts can send reports without end

// As large as the system permits; what it is.
int set_buffer(int socket, int force, int plain) {
    int size = kBuffer;
    if (::setsockopt(socket, SOL_SOCKET, force, &size, sizeof size) != 0)
        ::setsockopt(socket, SOL_SOCKET, plain, &size, sizeof size);
    socklen_t bytes = sizeof size;
    ::getsockopt(socket, SOL_SOCKET, plain, &size, &bytes);
    return size;
}

// The room for what comes.
int set_options(int socket, const Sockets::Options& options) {
    // Frames are never fragmented: the hand-shake finds the path's MTU by what arrives.
    const int probe = IP_PMTUDISC_PROBE, on = 1;
    keep_reports(socket);
    ::setsockopt(socket, IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof probe);
    ::setsockopt(socket, IPPROTO_UDP, UDP_GRO, &on, sizeof on);
    if (options.busy_poll_us > 0)
        ::setsockopt(socket, SOL_SOCKET, SO_BUSY_POLL, &options.busy_poll_us, sizeof options.busy_poll_us);
    set_buffer(socket, SO_SNDBUFFORCE, SO_SNDBUF);
    return set_buffer(socket, SO_RCVBUFFORCE, SO_RCVBUF);
}

// Hot calls call it, so it throws nothing: if an allocation fails, the log lacks the line.
void log_without_socket(const NicAddress& peer, int error) try {
    VIADUCT_LOG(info, "udp", "no socket for %s alone: %s; it goes on without", text_of(peer).c_str(),
                std::strerror(error));
} catch (const std::exception&) {
}

}  // namespace

Sockets::Sockets(Fd own, const sockaddr_in& address, const Options& options)
    : own_(std::move(own)), address_(address), options_(options), likely_(own_.get()) {
    options_.connected = std::min(options_.connected, kMostConnected);
    ways_.reserve(options_.connected);
    receive_room_ = set_options(own_.get(), options_);
    epoll_ = Fd(above_stdio(::epoll_create1(EPOLL_CLOEXEC)));
    if (!watch(own_.get())) epoll_ = Fd();
    if (!epoll_.valid()) options_.connected = 0;
}

bool Sockets::watch(int socket) {
    epoll_event e{};
    e.events = EPOLLIN;
    e.data.fd = socket;
    return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket, &e) == 0;
}

// ---- ways out

Sockets::Route Sockets::look_up(const NicAddress& to) {
    for (uint32_t i = 0; i < ways_.size(); ++i) {
        if (!(ways_[i].peer == to)) continue;
        last_ = i;
        ++ways_[i].uses;
        return {ways_[i].socket.get(), true};
    }
    if (options_.connected == 0 || !counts_enough(to) || !connect_to(to)) return {own_.get(), false};
    return {ways_[last_].socket.get(), true};
}

// Among the peers with most frames, as far as a few numbers can tell: a peer that is not among them takes the place of
// the one with the fewest.
bool Sockets::counts_enough(const NicAddress& to) {
    Candidate* least = &candidates_[0];
    for (Candidate& c : candidates_) {
        if (c.uses != 0 && c.peer == to) {
            if (++c.uses < kEnough) return false;
            c.uses = 0;
            return true;
        }
        if (c.uses < least->uses) least = &c;
    }
    *least = {to, 1};
    return false;
}

// The one with the fewest frames since others have asked, if that is far less than this peer had. Null: all are in use.
Sockets::Connected* Sockets::least_used() {
    Connected* const least =
        &*std::min_element(ways_.begin(), ways_.end(), [](const auto& a, const auto& b) { return a.uses < b.uses; });
    const bool idle = least->uses < kEnough / 4;
    for (Connected& c : ways_) c.uses /= 2;
    return idle ? least : nullptr;
}

// Sockets at one address and port need SO_REUSEPORT. They have it for this moment only: another one that was bound
// there would be given frames of this process.
bool Sockets::bind_beside(int socket) {
    const auto set_reuse = [&](int on) {
        ::setsockopt(socket, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
        ::setsockopt(own_.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
        for (const Connected& c : ways_) ::setsockopt(c.socket.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    };
    set_reuse(1);
    const int result = ::bind(socket, reinterpret_cast<const sockaddr*>(&address_), sizeof address_);
    set_reuse(0);
    return result == 0;
}

// An error of an earlier frame comes before what has come, once.
bool Sockets::has_frames(int socket) {
    char byte;
    for (int tries = 0; tries < 3; ++tries) {
        if (::recv(socket, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT) >= 0) return true;
        if (errno == EAGAIN) return false;
        note_error();
    }
    return true;  // as far as it can be known
}

// ---- reports

void Sockets::take_reports() {
    if (!reports_) return;
    const CancellationHeldOff inside_hot_calls;
    reports_ = take_reports_of(own_.get());
    for (const Connected& c : ways_) reports_ = take_reports_of(c.socket.get()) || reports_;
}

// True: there are more.
bool Sockets::take_reports_of(int socket) {
    for (uint32_t i = 0; i < kReportsAtOnce; ++i) {
        sockaddr_in to{};  // of the datagram
        alignas(cmsghdr) char control[kReportBytes];
        msghdr m{};
        m.msg_name = &to;
        m.msg_namelen = sizeof to;
        m.msg_control = control;
        m.msg_controllen = sizeof control;
        if (::recvmsg(socket, &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return false;
        if (!is_port_unreachable(m)) continue;
        ++closed_reports_;
        const NicAddress peer = from_socket_address(to);
        const auto end = closed_.begin() + closed_count_;
        if (closed_count_ == kMostClosed || std::find(closed_.begin(), end, peer) != end) continue;
        closed_[closed_count_++] = peer;
    }
    return true;
}

bool Sockets::next_closed(NicAddress* peer) {
    take_reports();
    if (closed_count_ == 0) return false;
    *peer = closed_[--closed_count_];
    return true;
}

// What waits in the own socket now: no more datagrams than the memory that they take has room for. What comes to it
// later, from whatever peer, is not waited for.
uint32_t Sockets::most_in_own() const {
    std::array<uint32_t, SK_MEMINFO_VARS> memory{};
    socklen_t bytes = sizeof memory;
    const bool known = ::getsockopt(own_.get(), SOL_SOCKET, SO_MEMINFO, memory.data(), &bytes) == 0;
    const uint32_t held = known ? memory[SK_MEMINFO_RMEM_ALLOC] : static_cast<uint32_t>(receive_room_);
    return held / kLeastCharge + kOnTheWay;
}

// Between bind and connect, frames of any peer may come to the new socket: they are taken from it as from the others.
bool Sockets::connect_to(const NicAddress& peer) {
    const CancellationHeldOff inside_hot_calls;
    const sockaddr_in to = to_socket_address(peer);
    if (ways_.size() == options_.connected) {
        Connected* const old = least_used();
        // Frames of its old peer that wait there are older than those that come to the own socket next.
        if (old == nullptr || has_frames(old->socket.get()) ||
            ::connect(old->socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0)
            return false;
        old->peer = peer;
        old->uses = kEnough;
        last_ = static_cast<uint32_t>(old - ways_.data());
        own_first_ = most_in_own();
        return true;
    }
    Fd socket(above_stdio(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
    if (socket.valid()) set_options(socket.get(), options_);
    if (!socket.valid() || !watch(socket.get()) || !bind_beside(socket.get())) {
        log_without_socket(peer, errno);
        options_.connected = static_cast<uint32_t>(ways_.size());
        return false;
    }
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) return false;
    last_ = static_cast<uint32_t>(ways_.size());
    ways_.push_back({peer, std::move(socket), kEnough});
    own_first_ = most_in_own();
    return true;
}

// ---- what has come

void Sockets::find_ready() {
    std::array<epoll_event, kMostConnected + 1> events;
    int n = 0;
    {
        const CancellationHeldOff inside_hot_calls;
        n = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
    }
    next_ready_ = ready_count_ = 0;
    bool others = false;
    for (int i = 0; i < n; ++i) {
        ready_[ready_count_++] = events[static_cast<size_t>(i)].data.fd;
        others = others || ready_[ready_count_ - 1] != likely_;
    }
    every_ = others ? 1 : std::min(2 * every_, kSeldom);
    until_all_ = every_;
}

}  // namespace viaduct::udp
