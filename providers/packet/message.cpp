// SPDX-License-Identifier: BSD-2-Clause
#include "providers/packet/message.hpp"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <iterator>

namespace viaduct::packet {

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

constexpr size_t kMostFiles = 253;  // of one message (SCM_MAX_FD)

// Bytes of the message, 0: the end, negative: none. There is room for all files that a message can bring:
// others would be closed here and now, however long that takes.
ssize_t receive(int socket, void* message, size_t bytes, std::vector<Fd>* files) {
    iovec part{message, bytes};
    msghdr m{};
    m.msg_iov = &part;
    m.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(kMostFiles * sizeof(int))];
    m.msg_control = control;
    m.msg_controllen = sizeof control;
    ssize_t got = 0;
    do {
        got = ::recvmsg(socket, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | MSG_TRUNC);
    } while (got < 0 && errno == EINTR);
    if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK ? -1 : 0;
    std::array<Fd, kMostFiles> found;  // owned before the vector allocates
    size_t count = 0;
    for (const cmsghdr* c = CMSG_FIRSTHDR(&m); c != nullptr; c = CMSG_NXTHDR(&m, const_cast<cmsghdr*>(c))) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        for (size_t at = CMSG_LEN(0); at + sizeof(int) <= c->cmsg_len && count < kMostFiles; at += sizeof(int)) {
            int received = -1;
            std::memcpy(&received, reinterpret_cast<const char*>(c) + at, sizeof received);
            found[count++] = Fd(above_stdio(received));
        }
    }
    if (count != 0)
        files->insert(files->end(), std::make_move_iterator(found.begin()),
                      std::make_move_iterator(found.begin() + static_cast<std::ptrdiff_t>(count)));
    return got;
}

}  // namespace

Status take_message(int socket, void* message, size_t bytes, std::vector<Fd>* files) {
    const ssize_t got = receive(socket, message, bytes, files);
    if (got < 0) return Status::not_done;
    return got == static_cast<ssize_t>(bytes) ? Status::ok : Status::closed;
}

}  // namespace viaduct::packet
