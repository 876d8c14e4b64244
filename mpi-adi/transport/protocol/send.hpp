// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include "mpi-adi/transport/protocol/peer.hpp"

namespace viaduct::protocol {

// put_eager() of a lane that makes a frame of everything.
template <class L>
inline bool put_eager_frame(L& lane, const void* data, size_t bytes, int tag, int rank, uint64_t context,
                            int mode) {
    if (bytes > lane.L::eager_limit(true)) return false;
    Frame frame = {};
    frame.type = FrameType::eager;
    frame.flags = static_cast<uint8_t>(mode & MPIP_MODE_READY);
    frame.bytes = static_cast<uint32_t>(bytes);
    frame.context = context;
    frame.tag = tag;
    frame.rank = rank;
    frame.length = bytes;
    return lane.L::put(frame, {data});
}

}  // namespace viaduct::protocol
