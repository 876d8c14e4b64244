// SPDX-License-Identifier: BSD-2-Clause
#include "core/shm/wake_event.hpp"

#include <sys/socket.h>

#include <cerrno>

namespace viaduct {

bool WakeEvent::open() {
    reset();
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) return false;
    read_end_ = KeptFd(Fd(above_stdio(ends[0])));
    write_end_ = KeptFd(Fd(above_stdio(ends[1])));
    return read_end_.valid() && write_end_.valid();
}

void WakeEvent::signal() const {
    const int saved_errno = errno;
    const char one = 1;
    // Full: it has been signalled already.
    if (const int end = write_end_.ours(); end >= 0) [[maybe_unused]]
        const ssize_t sent = ::send(end, &one, sizeof one, MSG_NOSIGNAL | MSG_DONTWAIT);
    errno = saved_errno;
}

void WakeEvent::clear() const {
    const int saved_errno = errno;
    const int end = read_end_.ours();
    char bytes[16];
    while (end >= 0 && ::recv(end, bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
    }
    errno = saved_errno;
}

void WakeEvent::reset() {
    read_end_.reset();
    write_end_.reset();
}

}  // namespace viaduct
