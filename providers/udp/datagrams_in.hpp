// SPDX-License-Identifier: BSD-2-Clause
// What comes to UDP sockets, frame by frame. A datagram is one frame, or a train of frames of one size that the kernel
// has put together (UDP_GRO); the length in the first one's header says where the next begins. Where single frames
// wait in a row, up to 16 are taken by one call; else one datagram, which is the cheapest for an empty poll and keeps a
// train in the cache until its frames are placed. Used by UdpPort, under its lock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "viaduct/types.hpp"

namespace viaduct::udp {

class DatagramsIn {
public:
    DatagramsIn() : room_(size_t{kMost} * kRoom) {}

    // All that is here has been taken. False: nothing has come to that socket.
    bool fetch(int socket);
    // Whether a fetch has met an error since the last call: the socket may have reports.
    bool met_error() { return std::exchange(met_error_, false); }
    // False: all that is here has been taken, or this is a datagram without a byte.
    bool next(std::span<const std::byte>* frame, NicAddress* from);
    uint32_t count() const { return count_; }  // datagrams of the last fetch
    bool is_empty() const { return next_ == count_; }
    uint64_t trains() const { return trains_; }

private:
    static constexpr uint32_t kMost = 16;      // datagrams taken by one call
    static constexpr uint32_t kRoom = 65'536;  // of each

    struct In {
        uint32_t bytes = 0, each = 0;  // of the datagram, of each frame in it
        NicAddress from;
    };

    bool fetch_one(int socket);
    bool fetch_several(int socket);
    void note_size_of_frames(In*, const std::byte* datagram);

    std::vector<std::byte> room_;
    std::array<In, kMost> in_{};
    uint32_t count_ = 0, next_ = 0, offset_ = 0;  // datagrams that are here, and how far they are taken
    uint32_t in_a_row_ = 0;  // fetches that had a single frame each
    bool met_error_ = false;
    uint64_t trains_ = 0;
};

}  // namespace viaduct::udp
