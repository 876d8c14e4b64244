// SPDX-License-Identifier: BSD-2-Clause
#include "core/fair/acceptor.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace viaduct::fair {

namespace {

constexpr int64_t kTellAgain = 10'000'000'000;

Fd open_reserve() { return Fd(above_stdio(::open("/dev/null", O_RDONLY | O_CLOEXEC))); }

}  // namespace

Acceptor::Acceptor(Fd listener, int epoll, epoll_data_t data)
    : listener_(std::move(listener)), reserve_(open_reserve()), epoll_(epoll), data_(data) {
    epoll_event e{};
    e.events = EPOLLIN;
    e.data = data_;
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, listener_.get(), &e);
}

void Acceptor::watch(uint32_t events) {
    epoll_event e{};
    e.events = events;
    e.data = data_;
    ::epoll_ctl(epoll_, EPOLL_CTL_MOD, listener_.get(), &e);
}

// Invalid: errno says why.
Fd Acceptor::accept() const {
    int fd = -1;
    do {
        fd = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    } while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
    return Fd(fd < 0 ? fd : above_stdio(fd));
}

// The kernel looks for a descriptor before it looks for a connection.
bool Acceptor::has_connection() const {
    pollfd p{listener_.get(), POLLIN, 0};
    return ::poll(&p, 1, 0) == 1;
}

void Acceptor::keep_reserve() {
    if (!reserve_.valid()) reserve_ = open_reserve();
}

Acceptor::Next Acceptor::next(const PendingConnections& pending, int64_t now, Fd* out, uint64_t* oldest) {
    if (rests()) return Next::none;
    keep_reserve();
    *out = accept();
    if (out->valid()) return Next::connection;
    if ((errno != EMFILE && errno != ENFILE) || !has_connection()) return Next::none;
    *oldest = pending.oldest_of_largest_user();
    if (*oldest != 0) return Next::evict;
    if (reserve_.valid()) {
        reserve_.reset();
        *out = accept();
        if (out->valid()) return Next::turn_away;
    }
    watch(0);
    rests_until_ = now + kRest;
    return Next::none;
}

void Acceptor::look(int64_t now) {
    if (!rests() || now < rests_until_) return;
    rests_until_ = 0;
    watch(EPOLLIN);
}

bool Acceptor::may_tell(int64_t now) {
    if (now < tell_again_) return false;
    tell_again_ = now + kTellAgain;
    return true;
}

}  // namespace viaduct::fair
