// SPDX-License-Identifier: BSD-2-Clause
#include "providers/udp/daemon/server.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/clock/clock.hpp"
#include "core/log/log.hpp"
#include "core/process/peer_process.hpp"
#include "providers/packet/message.hpp"
#include "providers/udp/address.hpp"
#include "providers/wire/bytes.hpp"
#include "providers/wire/version_answer.hpp"

namespace viaduct::udp {

using packet::send_message;
using packet::take_message;

namespace {

constexpr int64_t kGreetingTimeout = 5'000'000'000;  // for a connection without a message
constexpr int64_t kRefuseFor = 200'000'000;
constexpr size_t kMostSessions = 4096;
constexpr size_t kMostSilent = 64;  // connections without a first message
constexpr int kLongestSleepMs = 1000;
constexpr int kFramesPerLook = 64;
constexpr int kPortBuffer = 4 << 20;

bool add_to(int epoll, int fd, void* subject) {
    epoll_event e{};
    e.events = EPOLLIN | EPOLLRDHUP;
    e.data.ptr = subject;
    return ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) == 0;
}

}  // namespace

RequestServer::RequestServer(Options options, Fd listener)
    : options_(options), listener_(std::move(listener)), room_(1 << 16), parcel_(1 << 16) {
    epoll_ = Fd(above_stdio(::epoll_create1(EPOLL_CLOEXEC)));
    add_to(epoll_.get(), listener_.get(), this);
    idle_since_ = now_ns();
}

bool RequestServer::open_port(std::string* why, std::string* cure) {
    const std::string name = text_of(options_.address);
    Fd port(above_stdio(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
    const sockaddr_in own = to_socket_address(options_.address);
    if (!port.valid() || ::bind(port.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0) {
        *why = "UDP port " + name + " cannot be had: " + std::strerror(errno);
        *cure = errno == EADDRINUSE
                    ? "another user's viaduct-udpd or another program has it: let root run viaduct-udpd for all users, "
                      "or set udp.port to another port, the same at all hosts"
                    : "see udp.interfaces and udp.port";
        return false;
    }
    ::setsockopt(port.get(), SOL_SOCKET, SO_RCVBUF, &kPortBuffer, sizeof kPortBuffer);
    if (!add_to(epoll_.get(), port.get(), nullptr)) {
        *why = "no memory";
        return false;
    }
    port_ = std::move(port);
    return true;
}

void RequestServer::refuse(const std::string& why, const std::string& cure) {
    refusal_ = why;
    cure_ = cure;
    options_.linger_ns = kRefuseFor;  // the next request may succeed
}

void RequestServer::run() {
    while (stop_ == 0) {
        int timeout = kLongestSleepMs;
        if (sessions_.empty() && options_.linger_ns >= 0) {
            const int64_t left = idle_since_ + options_.linger_ns - now_ns();
            timeout = static_cast<int>(std::clamp<int64_t>(left / 1'000'000 + 1, 0, kLongestSleepMs));
        }
        look(timeout);
        if (!sessions_.empty() || options_.linger_ns < 0 || now_ns() - idle_since_ < options_.linger_ns) continue;
        look(0);  // a program may have connected just now
        if (sessions_.empty()) return;
    }
}

void RequestServer::look(int timeout_ms) {
    epoll_event events[64];
    const int n = ::epoll_wait(epoll_.get(), events, 64, timeout_ms);
    bool callers = false;
    // What programs say comes before the requests that are for them.
    for (int i = 0; i < n; ++i) {
        void* const subject = events[i].data.ptr;
        if (subject == this) callers = true;
        if (subject != this && subject != nullptr) hear(*static_cast<Session*>(subject));
    }
    if (callers) take_connections();
    const int64_t now = now_ns();
    for (const auto& s : sessions_)
        if (!s->greeted && now - s->since > kGreetingTimeout) s->over = true;
    close_over();
    for (int i = 0; i < n; ++i)
        if (events[i].data.ptr == nullptr) take_frames();
}

void RequestServer::take_connections() {
    const auto silent = std::count_if(sessions_.begin(), sessions_.end(), [](const auto& s) { return !s->greeted; });
    for (auto i = static_cast<size_t>(silent); i < kMostSilent && sessions_.size() < kMostSessions; ++i) {
        Fd fd(above_stdio(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)));
        if (!fd.valid()) return;
        ucred peer{};
        socklen_t bytes = sizeof peer;
        const bool known = ::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0;
        // Root's serves all users, another user's only that user.
        if (!known || (peer.uid != ::geteuid() && peer.uid != 0 && ::geteuid() != 0)) continue;
        auto s = std::make_unique<Session>();
        s->socket = std::move(fd);
        s->since = now_ns();
        bool ended = false;
        s->process = peer_process(s->socket.get(), peer.pid, &ended);
        if (ended || !add_to(epoll_.get(), s->socket.get(), s.get())) continue;
        if (s->process.valid()) add_to(epoll_.get(), s->process.get(), s.get());
        sessions_.push_back(std::move(s));
    }
}

// ---- what programs say

void RequestServer::hear(Session& s) {
    if (s.over) return;
    // That process is no more, though others may hold its socket.
    pollfd p{s.process.get(), POLLIN, 0};
    if (s.process.valid() && ::poll(&p, 1, 0) > 0) {
        s.over = true;
        return;
    }
    if (!s.greeted) return on_hello(s);
    for (int i = 0; i < 64; ++i) {
        WishMessage wish;
        std::vector<Fd> files;
        const Status got = take_message(s.socket.get(), &wish, sizeof wish, &files);
        if (got == Status::not_done) return;
        const bool sane = got == Status::ok && files.empty() && wish.local.discriminator_len <= kMaxDiscriminator &&
                          wish.remote.discriminator_len <= kMaxDiscriminator;
        if (!sane) {
            s.over = true;
            return;
        }
        on_wish(s, wish);
    }
}

void RequestServer::on_hello(Session& s) {
    Hello hello;
    std::vector<Fd> files;
    const Status got = take_message(s.socket.get(), &hello, sizeof hello, &files);
    if (got == Status::not_done) return;
    if (got != Status::ok || !files.empty() || hello.magic != kDaemonMagic) {
        s.over = true;
        return;
    }
    Welcome w;
    if (hello.version != kDaemonVersion) {
        w.status = static_cast<int32_t>(Status::version);
        packet::put_text(w.why, "viaduct-udpd is of another version");
        packet::put_text(w.cure, "end it");
    } else if (!port_.valid()) {
        w.status = static_cast<int32_t>(Status::out_of_resources);
        packet::put_text(w.why, refusal_);
        packet::put_text(w.cure, cure_);
    } else {
        s.greeted = true;
        s.slot = ++last_slot_;
        s.token = hello.token;
        s.data = hello.data;
    }
    if (!send_message(s.socket.get(), &w, sizeof w) || w.status != 0) s.over = true;
}

void RequestServer::on_wish(Session& s, const WishMessage& wish) {
    if (wish.what != WishMessage::add) return requests_.remove(s.slot, wish.number, wish.what == WishMessage::forget);
    packet::Held held;
    requests_.add(s.slot, {wish.number, wish.peer != 0, wish.link, wish.local, wish.remote, s.data}, now_ns(), &held);
    if (!held.frame.empty()) route(held.frame, held.from);
    Envelope known;
    known.what = Envelope::known;
    known.number = wish.number;
    pass_to(s, known, {});
}

void RequestServer::close_over() {
    for (size_t i = 0; i < sessions_.size();) {
        Session& s = *sessions_[i];
        if (!s.over) {
            ++i;
            continue;
        }
        if (s.greeted) requests_.drop(s.slot);
        // Out of the epoll set before they are closed: others may hold the same descriptions.
        ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, s.socket.get(), nullptr);
        if (s.process.valid()) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, s.process.get(), nullptr);
        sessions_.erase(sessions_.begin() + static_cast<std::ptrdiff_t>(i));
        idle_since_ = now_ns();
    }
}

RequestServer::Session* RequestServer::session_of(uint32_t slot) {
    const auto found = std::find_if(sessions_.begin(), sessions_.end(),
                                    [&](const auto& s) { return s->greeted && s->slot == slot; });
    return found != sessions_.end() ? found->get() : nullptr;
}

// ---- frames

void RequestServer::take_frames() {
    for (int i = 0; i < kFramesPerLook; ++i) {
        sockaddr_in from{};
        socklen_t bytes = sizeof from;
        const ssize_t n = ::recvfrom(port_.get(), room_.data(), room_.size(), 0, reinterpret_cast<sockaddr*>(&from),
                                     &bytes);
        if (n < 0) {
            if (errno == EAGAIN || errno == EWOULDBLOCK) return;
            continue;  // what an earlier datagram met on its way
        }
        route({room_.data(), static_cast<size_t>(n)}, from_socket_address(from));
    }
}

void RequestServer::route(std::span<const std::byte> frame, const NicAddress& from) {
    if (frame.empty()) return;
    const int64_t now = now_ns();
    if (wire::load8(frame.data()) != wire::kVersion) {
        if (!wire::asks_for_version(frame) || !answers_.allows(now)) return;
        std::byte answer[wire::kVersionAnswerBytes];
        wire::make_version_answer(frame, answer);
        return send(answer, from);
    }
    const packet::Target target = requests_.incoming(frame, from, now);
    if (target.slot != packet::kNoSlot) {
        Envelope e;
        e.what = Envelope::request;
        e.from = from;
        if (Session* s = session_of(target.slot)) pass_to(*s, e, frame);
    } else if (target.answer == wire::Kind::no_match) {
        std::byte answer[packet::kNoMatchBytes];
        if (packet::make_no_match(frame, target.nonce, answer)) send(answer, from);
    }
}

// Lost when the program takes nothing out of its socket: the requester asks again.
void RequestServer::pass_to(Session& s, Envelope e, std::span<const std::byte> frame) {
    if (sizeof e + frame.size() > parcel_.size()) return;
    e.token = s.token;
    std::memcpy(parcel_.data(), &e, sizeof e);
    if (!frame.empty()) std::memcpy(parcel_.data() + sizeof e, frame.data(), frame.size());
    send({parcel_.data(), sizeof e + frame.size()}, s.data);
}

void RequestServer::send(std::span<const std::byte> bytes, const NicAddress& to) {
    const sockaddr_in address = to_socket_address(to);
    ::sendto(port_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&address),
             sizeof address);
}

}  // namespace viaduct::udp
