// SPDX-License-Identifier: BSD-2-Clause
// Messages between an application and a process that serves several of them, over a SOCK_SEQPACKET socket.
#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "core/shm/segment.hpp"
#include "viaduct/types.hpp"

namespace viaduct::packet {

// Sends one message, with a descriptor unless it is negative; never waits. False: it was not sent.
bool send_message(int socket, const void* message, size_t bytes, int fd = -1);

// Takes one message of exactly `bytes`; the descriptors that came with it are appended to `files`. not_done:
// none is there. closed: the other side has ended, or said something else.
Status take_message(int socket, void* message, size_t bytes, std::vector<Fd>* files);

template <size_t n>
void put_text(char (&to)[n], const std::string& text) {
    const size_t bytes = text.copy(to, n - 1);
    to[bytes] = '\0';
}

// Text of a message from elsewhere, which may not be terminated.
template <size_t n>
std::string get_text(const char (&from)[n]) {
    return std::string(from, strnlen(from, n));
}

}  // namespace viaduct::packet
