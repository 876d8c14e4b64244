// SPDX-License-Identifier: BSD-2-Clause
#include "core/daemon/admission.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "core/clock/clock.hpp"
#include "core/log/log.hpp"
#include "core/process/peer_process.hpp"

namespace viaduct::daemon {

namespace {

constexpr auto kNoUser = static_cast<uid_t>(-1);

// False: the process has ended. A process that ended in the queue without a message costs one look at its socket.
bool find_process(Program& p) {
    char first = 0;
    bool ended = ::recv(p.socket.get(), &first, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
    if (!ended) p.process = peer_process(p.socket.get(), p.pid, &ended);
    return !ended;
}

bool add_to(int epoll, int fd, void* subject) {
    epoll_event e{};
    e.events = EPOLLIN | EPOLLRDHUP;
    e.data.ptr = subject;
    return ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) == 0;
}

}  // namespace

Admission::Admission(Fd listener, int epoll, epoll_data_t data, const Rules& rules, Closers& closers)
    : rules_(rules),
      epoll_(epoll),
      closers_(closers),
      acceptor_(std::move(listener), epoll, data),
      silent_(rules.silent_of_one_user, rules.silent_in_all) {}

bool Admission::Daemon::serves(Program& p) { return ::geteuid() == 0 || may_replace(p.user); }

void Admission::Daemon::log_shortage(const char* component) {
    VIADUCT_LOG(error, component,
                "no descriptors left: silent programs make room, others are turned away (see ulimit -n)");
}

void Admission::accept(Daemon& daemon) {
    const int64_t begin = now_ns();
    for (size_t i = 0; i < rules_.most_at_once && accept_one(daemon, now_ns()); ++i)
        if (now_ns() - begin >= rules_.accept_ns) return;
}

// False: no program waits, or none can be accepted now.
bool Admission::accept_one(Daemon& daemon, int64_t now) {
    Program p;
    uint64_t oldest = 0;
    const fair::Acceptor::Next next = acceptor_.next(silent_, now, &p.socket, &oldest);
    if (next == fair::Acceptor::Next::none) return false;
    if (next != fair::Acceptor::Next::connection && acceptor_.may_tell(now)) daemon.log_shortage(rules_.component);
    if (next == fair::Acceptor::Next::evict) {
        daemon.evict(oldest);
        return true;
    }
    ucred peer{};
    socklen_t bytes = sizeof peer;
    const bool has_user = ::getsockopt(p.socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0;
    p.user = has_user ? peer.uid : kNoUser;
    p.pid = peer.pid;
    p.since = now;
    p.number = ++last_number_;
    if (!has_user || !daemon.serves(p)) {
        closers_.close_socket(p.user, std::move(p.socket));
        return true;
    }
    if (!find_process(p))
        p.refusal = Refusal::ended;
    else if (next == fair::Acceptor::Next::turn_away)
        p.refusal = Refusal::descriptors;
    else if (!make_room(daemon, p.user))
        p.refusal = Refusal::places;
    if (!may_enter(p)) {
        daemon.turn_away(p);
        closers_.close_socket(p.user, std::move(p.socket));
        return true;
    }
    silent_.add(p.user, p.number);
    if (!daemon.enter(p)) release(p);
    return true;
}

// Closes silent programs, the oldest first, until the user may have one more. False: the user has none that makes room.
bool Admission::make_room(Daemon& daemon, uid_t user) {
    while (const uint64_t silent = silent_.to_evict_for(user)) daemon.evict(silent);
    while (!daemon.has_room(user)) {
        const uint64_t silent = silent_.oldest_of(user);
        if (silent == 0) return false;
        daemon.evict(silent);
    }
    return true;
}

bool Admission::may_enter(const Program& p) const {
    if (p.refusal == Refusal::none) return true;
    return p.refusal != Refusal::ended && rules_.flaws != 0 && p.known && may_replace(p.user);
}

// Without a watch on the process the end of the socket shows the program's end.
bool Admission::watch(const Program& p, void* subject) {
    if (!add_to(epoll_, p.socket.get(), subject)) return false;
    if (p.process.valid()) add_to(epoll_, p.process.get(), subject);
    return true;
}

void Admission::release(Program& p) {
    settle(p);
    // Out of the epoll set before they are closed: other processes may hold the same descriptions.
    ::epoll_ctl(epoll_, EPOLL_CTL_DEL, p.socket.get(), nullptr);
    if (p.process.valid()) ::epoll_ctl(epoll_, EPOLL_CTL_DEL, p.process.get(), nullptr);
    closers_.close_socket(p.user, std::move(p.socket));
    acceptor_.keep_reserve();
}

}  // namespace viaduct::daemon
