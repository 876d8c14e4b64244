// SPDX-License-Identifier: BSD-2-Clause
#include "mpi-adi/transport/tcp/sockets.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>

namespace viaduct::tcp {

void prepare(int fd) {
    const int on = 1, idle = 5, interval = 2, count = 5;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

int read_more(int fd, void* to, size_t bytes, size_t* had) {
    const ssize_t n = ::recv(fd, static_cast<char*>(to) + *had, bytes - *had, MSG_DONTWAIT);
    if (n < 0) return errno == EAGAIN || errno == EINTR ? 0 : -1;
    if (n == 0) return -1;
    *had += static_cast<size_t>(n);
    return *had == bytes ? 1 : 0;
}

}  // namespace viaduct::tcp
