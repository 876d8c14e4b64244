// SPDX-License-Identifier: BSD-2-Clause
#include "providers/acenic/daemon/protocol.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace viaduct::acenic {

std::string engine_address(const std::string& short_port_name, uint32_t user) {
    return "@viaduct-acenicd-" + std::to_string(user) + "-" + short_port_name;
}

bool send_message(int socket, const void* message, size_t bytes, int fd) {
    iovec part{const_cast<void*>(message), bytes};
    msghdr m{};
    m.msg_iov = &part;
    m.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    if (fd >= 0) {
        m.msg_control = control;
        m.msg_controllen = sizeof control;
        cmsghdr* c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(c), &fd, sizeof fd);
    }
    ssize_t sent = 0;
    do {
        sent = ::sendmsg(socket, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent == static_cast<ssize_t>(bytes);
}

namespace {

// Bytes of the message, 0: the end, negative: none.
ssize_t receive(int socket, void* message, size_t bytes, Fd* fd) {
    iovec part{message, bytes};
    msghdr m{};
    m.msg_iov = &part;
    m.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    m.msg_control = control;
    m.msg_controllen = sizeof control;
    ssize_t got = 0;
    do {
        got = ::recvmsg(socket, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | MSG_TRUNC);
    } while (got < 0 && errno == EINTR);
    if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK ? -1 : 0;
    // The kernel gives no more descriptors than there is room for and closes the others.
    const cmsghdr* c = CMSG_FIRSTHDR(&m);
    if (c != nullptr && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
        c->cmsg_len >= CMSG_LEN(sizeof(int))) {
        int received = -1;
        std::memcpy(&received, CMSG_DATA(c), sizeof received);
        Fd owned(above_stdio(received));
        if (fd != nullptr) *fd = std::move(owned);
    }
    return got;
}

}  // namespace

Status take_message(int socket, void* message, size_t bytes, Fd* fd) {
    const ssize_t got = receive(socket, message, bytes, fd);
    if (got < 0) return Status::not_done;
    return got == static_cast<ssize_t>(bytes) ? Status::ok : Status::closed;
}

bool take_looks(int socket) {
    for (int i = 0; i < 8; ++i) {
        char one = 0;
        const ssize_t got = receive(socket, &one, sizeof one, nullptr);
        if (got != 1) return got < 0;
    }
    return true;
}

}  // namespace viaduct::acenic
