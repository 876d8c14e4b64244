// SPDX-License-Identifier: BSD-2-Clause
#include "core/process/peer_process.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77  // Linux 6.5; headers of Debian 12 are older than its backported kernels
#endif

namespace viaduct {

Fd peer_process(int socket, pid_t number, bool* ended) {
    int fd = -1;
    socklen_t length = sizeof fd;
    *ended = false;
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &length) == 0 && fd >= 0)
        return Fd(above_stdio(fd));
    Fd process;
    if (number > 0) {
        process = Fd(above_stdio(static_cast<int>(::syscall(SYS_pidfd_open, number, 0))));
        *ended = !process.valid() && errno == ESRCH;
    }
    // The number may have been given to another process meanwhile; not while the socket is still held.
    pollfd p{socket, POLLIN, 0};
    *ended = *ended || ::poll(&p, 1, 0) < 0 || (p.revents & (POLLHUP | POLLERR)) != 0;
    if (*ended) return {};
    return process;
}

}  // namespace viaduct
