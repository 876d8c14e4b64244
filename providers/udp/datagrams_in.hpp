// SPDX-License-Identifier: BSD-2-Clause
// What comes to a UDP socket, frame by frame. A datagram is one frame, or a train of frames of one size that the kernel
// has put together (UDP_GRO); the length in the first one's header says where the next begins. Where single frames come
// one after another, up to 16 are taken by one call; else one datagram, which is the cheapest for an empty poll and
// keeps a train in the cache until its frames are placed. Used by UdpPort, under its lock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "viaduct/types.hpp"

namespace viaduct::udp {

class DatagramsIn {
public:
    explicit DatagramsIn(int socket) : socket_(socket), room_(size_t{kMost} * kRoom) {}

    // False: nothing has come, or a datagram without a byte.
    bool next(std::span<const std::byte>* frame, NicAddress* from);
    bool is_empty() const { return next_ == count_; }
    uint64_t trains() const { return trains_; }

private:
    static constexpr uint32_t kMost = 16;      // datagrams taken by one call
    static constexpr uint32_t kRoom = 65'536;  // of each

    struct In {
        uint32_t bytes = 0, each = 0;  // of the datagram, of each frame in it
        NicAddress from;
    };

    void fetch();
    bool fetch_one();
    bool fetch_several();
    void note_size_of_frames(In*, const std::byte* datagram);

    const int socket_;
    std::vector<std::byte> room_;
    std::array<In, kMost> in_{};
    uint32_t count_ = 0, next_ = 0, offset_ = 0;  // datagrams that are here, and how far they are taken
    bool single_frames_come_ = false;
    uint64_t trains_ = 0;
};

}  // namespace viaduct::udp
