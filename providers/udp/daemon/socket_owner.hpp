// SPDX-License-Identifier: BSD-2-Clause
// The user of this host that has the UDP socket from which a datagram came, as the kernel reports it (sock_diag). The
// kernel answers within the call. One thread: the daemon's.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "core/shm/fd.hpp"
#include "viaduct/types.hpp"

namespace viaduct::udp {

class SocketOwner {
public:
    SocketOwner();
    // The user of the socket that is bound to the address `from`, one of this host, and to no other. Nothing: there is
    // no such socket, because the datagram came from another host, or its sender has closed the socket or bound it to
    // all addresses; or the kernel does not report owners.
    std::optional<uid_t> user_of(const NicAddress& from);

private:
    bool finds_own_socket();

    Fd netlink_;
    uint32_t sequence_ = 0;
};

}  // namespace viaduct::udp
