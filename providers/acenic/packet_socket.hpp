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
#include <utility>

#include "core/shm/segment.hpp"

struct rte_mbuf;

namespace viaduct::acenic {

class PacketSocket {
public:
    static constexpr uint32_t kBurst = 32;

    // Null: it cannot be had, and the driver is left to send.
    static std::unique_ptr<PacketSocket> open(const std::string& interface);

    // How many of the frames, at most kBurst, are taken. Their memory is not referred to any more; unlike
    // those that a driver takes they stay the caller's. May meet a cancellation point. A frame that the
    // interface refuses for good is taken and lost, and counted.
    uint32_t send(rte_mbuf* const* frames, uint32_t count);

    struct Lost {
        uint64_t too_large = 0;  // for the interface, or for the one behind it (veth)
        uint64_t not_taken = 0;  // of a size that has passed before, for longer than any queue is full
        uint64_t other = 0;      // the interface is down, or removed
    };
    const Lost& lost() const { return lost_; }

private:
    PacketSocket(Fd socket, std::string interface)
        : socket_(std::move(socket)), interface_(std::move(interface)) {}
    bool is_refused(uint32_t bytes, int error);

    Fd socket_;
    std::string interface_;
    uint32_t passed_ = 0;     // size of the largest frame that has been taken
    int64_t full_since_ = 0;  // since when the frame that is next has been refused; 0: it has not
    Lost lost_;
};

}  // namespace viaduct::acenic
