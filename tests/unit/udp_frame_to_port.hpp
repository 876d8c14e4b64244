// SPDX-License-Identifier: BSD-2-Clause
// A frame of a peer that has a connection.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/shm/fd.hpp"
#include "providers/wire/format.hpp"

namespace viaduct::tests {

inline void send_frame(const Fd& from, const sockaddr_in& to, wire::Kind kind, uint16_t flags = 0) {
    std::array<std::byte, wire::kMinFrame> frame{};
    wire::Header h;
    h.kind = kind;
    h.flags = flags;
    h.destination = 77;
    h.source = 88;
    h.sequence = 1000;
    h.acknowledge = 2000;
    h.pass = 0x1122334455667788;
    h.length = static_cast<uint16_t>(wire::field_bytes(kind));
    wire::seal(frame.data(), h);
    ASSERT_GT(::sendto(from.get(), frame.data(), wire::kHeaderBytes + h.length, 0,
                       reinterpret_cast<const sockaddr*>(&to), sizeof to),
              0);
}

}  // namespace viaduct::tests
