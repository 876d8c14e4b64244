// SPDX-License-Identifier: BSD-2-Clause
#include "providers/acenic/memif_control.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "providers/acenic/fd_snapshot.hpp"

namespace viaduct::acenic {

namespace {

bool has_event(int fd) {
    pollfd p{fd, POLLIN | POLLRDHUP, 0};
    return ::poll(&p, 1, 0) != 0;
}

}  // namespace

// A socket without an event before it leaves the epoll set is in no list of events that the thread still has to serve,
// and afterwards it comes into none.
bool MemifControl::take(int driver_fd) {
    if (driver_fd < 0 || has_event(driver_fd)) return false;
    const Fd nothing(::eventfd(0, EFD_CLOEXEC));
    Fd socket(::fcntl(driver_fd, F_DUPFD_CLOEXEC, kFirstFd));
    if (!nothing.valid() || !socket.valid() || !stop_watching(driver_fd)) return false;
    ::dup3(nothing.get(), driver_fd, O_CLOEXEC);
    driver_fd_ = driver_fd;
    socket_ = std::move(socket);
    return true;
}

void MemifControl::give_back() {
    if (!is_held()) return;
    ::dup3(socket_.get(), driver_fd_, O_CLOEXEC);
    socket_.reset();
}

bool MemifControl::is_over() const { return is_held() && has_event(socket_.get()); }

}  // namespace viaduct::acenic
