// SPDX-License-Identifier: BSD-2-Clause
// A listening socket with a name that the kernel chooses, and its clients.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "core/shm/fd.hpp"

namespace viaduct::tests {

class UnixListener {
public:
    Fd listening(int backlog) {
        Fd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        sockaddr_un any{};
        any.sun_family = AF_UNIX;
        EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&any), sizeof any.sun_family), 0);
        length_ = sizeof name_;
        ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&name_), &length_);
        EXPECT_EQ(::listen(fd.get(), backlog), 0);
        return fd;
    }
    Fd client() const {
        Fd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
        EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&name_), length_), 0);
        return fd;
    }

private:
    sockaddr_un name_{};
    socklen_t length_ = 0;
};

}  // namespace viaduct::tests
