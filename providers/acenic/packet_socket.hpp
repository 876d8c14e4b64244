// SPDX-License-Identifier: BSD-2-Clause
// How frames leave an af_packet port: through a packet socket of our own, a burst in one call. DPDK's driver
// would copy them into a ring that it shares with the kernel, which the kernel copies from once more, into
// pages it allocates, before another end on this host (veth, bridge) may see them. Here it copies once, out
// of the memory a frame lies in. What comes is read by the driver, from its ring. Used by Port, under its
// lock.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/shm/segment.hpp"

struct rte_mbuf;

namespace viaduct::acenic {

class PacketSocket {
public:
    static constexpr uint32_t kBurst = 32;

    // Null: it cannot be had, and the driver is left to send.
    static std::unique_ptr<PacketSocket> open(const std::string& interface);

    // How many of the frames, at most kBurst, are taken. Their memory is not referred to any more; unlike
    // those that a driver takes they stay the caller's. May meet a cancellation point.
    uint32_t send(rte_mbuf* const* frames, uint32_t count);

private:
    explicit PacketSocket(Fd socket) : socket_(std::move(socket)) {}

    Fd socket_;
};

}  // namespace viaduct::acenic
