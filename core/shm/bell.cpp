// SPDX-License-Identifier: BSD-2-Clause
#include "core/shm/bell.hpp"

#include <sys/socket.h>

#include <cerrno>

namespace viaduct {

bool Bell::hang() {
    reset();
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) return false;
    ear_ = KeptFd(Fd(above_stdio(ends[0])));
    hand_ = KeptFd(Fd(above_stdio(ends[1])));
    return ear_.valid() && hand_.valid();
}

void Bell::ring() const {
    const int saved_errno = errno;
    const char one = 1;
    // Full: it has been rung already.
    if (const int hand = hand_.ours(); hand >= 0) [[maybe_unused]]
        const ssize_t sent = ::send(hand, &one, sizeof one, MSG_NOSIGNAL | MSG_DONTWAIT);
    errno = saved_errno;
}

void Bell::hush() const {
    const int saved_errno = errno;
    const int ear = ear_.ours();
    char rings[16];
    while (ear >= 0 && ::recv(ear, rings, sizeof rings, MSG_DONTWAIT) > 0) {
    }
    errno = saved_errno;
}

void Bell::reset() {
    ear_.reset();
    hand_.reset();
}

}  // namespace viaduct
