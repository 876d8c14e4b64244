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

constexpr int kPerLook = 16;  // programs that are admitted before the others have their turn
constexpr auto kNoUser = static_cast<uid_t>(-1);

bool serves(uid_t user) { return ::geteuid() == 0 || may_replace(user); }

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

void Admission::accept(Daemon& daemon) {
    for (int i = 0; i < kPerLook && accept_one(daemon, now_ns()); ++i) {
    }
}

// False: no program waits, or none can be accepted now.
bool Admission::accept_one(Daemon& daemon, int64_t now) {
    Program p;
    uint64_t oldest = 0;
    const fair::Acceptor::Next next = acceptor_.next(silent_, now, &p.socket, &oldest);
    if (next == fair::Acceptor::Next::none) return false;
    if (next != fair::Acceptor::Next::connection && acceptor_.may_tell(now))
        VIADUCT_LOG(error, rules_.component,
                    "no descriptors left: silent programs make room, others are turned away (see ulimit -n)");
    if (next == fair::Acceptor::Next::evict) {
        daemon.evict(oldest);
        return true;
    }
    ucred peer{};
    socklen_t bytes = sizeof peer;
    const bool known = ::getsockopt(p.socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0;
    p.user = known ? peer.uid : kNoUser;
    p.pid = peer.pid;
    p.without_room = next == fair::Acceptor::Next::turn_away;
    const bool may_enter = !p.without_room || (rules_.flaws != 0 && may_replace(p.user));
    if (!known || !serves(p.user) || !may_enter) {
        closers_.close_socket(p.user, std::move(p.socket));
        return true;
    }
    while (const uint64_t silent = silent_.to_evict_for(p.user)) daemon.evict(silent);
    p.since = now;
    p.number = ++last_number_;
    bool ended = false;
    p.process = peer_process(p.socket.get(), p.pid, &ended);
    silent_.add(p.user, p.number);
    if (ended || !daemon.enter(p)) release(p);
    return true;
}

// Without a watch on the process the end of the socket shows the program's end.
bool Admission::watch(const Program& p, void* subject) {
    if (!add_to(epoll_, p.socket.get(), subject)) return false;
    if (p.process.valid()) add_to(epoll_, p.process.get(), subject);
    return true;
}

void Admission::settle(const Program& p) { silent_.remove(p.user, p.number); }

void Admission::release(Program& p) {
    settle(p);
    // Out of the epoll set before they are closed: other processes may hold the same descriptions.
    ::epoll_ctl(epoll_, EPOLL_CTL_DEL, p.socket.get(), nullptr);
    if (p.process.valid()) ::epoll_ctl(epoll_, EPOLL_CTL_DEL, p.process.get(), nullptr);
    closers_.close_socket(p.user, std::move(p.socket));
}

}  // namespace viaduct::daemon
