// SPDX-License-Identifier: BSD-2-Clause
// The short message on its way out. L::put_eager() is bound here, so that neither a frame nor a call through
// a table stands between the engine and what carries the message.
#pragma once

#include "mpi-adi/transport/adi/blocking.hpp"
#include "mpi-adi/transport/protocol/peer.hpp"

namespace viaduct::protocol {

template <class L>
inline int Protocol::send(process_t* proc, const void* buf, size_t count, const mpip_type_t* type, int tag,
                          mpip_comm_t* comm, int mode) {
    Peer& p = *peer_of(proc);
    const size_t bytes = adi::bytes_of(count, type);
    const bool contiguous = type == nullptr || (type->d_flags & MPIP_TYPE_CONTIG) != 0;
    if (p.stops == 0 && proc->p_sendhead == nullptr && contiguous && (mode & MPIP_MODE_SYNC) == 0 &&
        static_cast<L&>(*p.lane).put_eager(buf, bytes, tag, comm->c_rank, comm->c_sndctxt, mode)) [[likely]] {
        ++adi::counters[number_].mc_eager;
        return MPIP_SUCCESS;
    }
    if ((mode & MPIP_MODE_TRY) != 0) return MPIP_AGAIN;
    return adi::blocking_send(proc, buf, count, type, tag, comm, mode);
}

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
