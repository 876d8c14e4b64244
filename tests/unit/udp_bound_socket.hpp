// SPDX-License-Identifier: BSD-2-Clause
// A UDP socket of a test, bound to a free port of an address.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "core/shm/fd.hpp"

namespace viaduct::tests {

// The address may be one of another host. `here` is where the socket is bound.
inline Fd bound_socket(in_addr_t ip, sockaddr_in* here) {
    Fd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int on = 1;
    EXPECT_EQ(::setsockopt(fd.get(), IPPROTO_IP, IP_FREEBIND, &on, sizeof on), 0);
    *here = {};
    here->sin_family = AF_INET;
    here->sin_addr.s_addr = htonl(ip);
    socklen_t bytes = sizeof *here;
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(here), sizeof *here), 0);
    ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(here), &bytes);
    return fd;
}

}  // namespace viaduct::tests
