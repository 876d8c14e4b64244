// SPDX-License-Identifier: BSD-2-Clause
// A file whose closing takes long.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <vector>

#include "core/shm/fd.hpp"

namespace viaduct::agent_testing {

// A socket whose closing takes so long unless that is forbidden before: the far end takes nothing, and SO_LINGER.
inline Fd lingering_socket(Fd* far_end, int seconds) {
    const Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    EXPECT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(::listen(listener.get(), 1), 0);
    EXPECT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
    Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
    *far_end = Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const std::vector<char> bytes(1 << 16);
    while (::send(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
    }
    const linger waits{1, seconds};
    EXPECT_EQ(::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &waits, sizeof waits), 0);
    return socket;
}

}  // namespace viaduct::agent_testing
