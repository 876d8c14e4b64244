// SPDX-License-Identifier: BSD-2-Clause
// Checks of what a program hands to point-to-point calls, and the fast path from handles to what the engine
// takes. Inline, because every message passes here.
#pragma once

#include "mpi-adi/engine/communicator.hpp"
#include "mpi-adi/engine/datatype.hpp"
#include "mpi-adi/engine/engine.hpp"

namespace viaduct::mpi {

// Of a message about to be sent or received; error is the class of the first argument that is wrong.
struct Arguments {
    Comm* comm = nullptr;
    Payload payload;
    int error = MPI_SUCCESS;
};

[[nodiscard]] inline int set_payload(Payload* payload, const void* buffer, MPI_Count count, MPI_Datatype handle) {
    if (count < 0) return MPI_ERR_COUNT;
    if (is_basic_handle(handle)) [[likely]] {
        payload->base = const_cast<void*>(buffer);
        payload->bytes = static_cast<uint64_t>(count) * static_cast<uint64_t>(basic_handle_size(handle));
        return buffer == nullptr && payload->bytes != 0 ? MPI_ERR_BUFFER : MPI_SUCCESS;
    }
    const Datatype* type = type_of(handle);
    // Programs name no type at all where there is nothing to send.
    if (type == nullptr || !type->committed) return count == 0 ? MPI_SUCCESS : MPI_ERR_TYPE;
    *payload = payload_of(buffer, static_cast<uint64_t>(count), *type);
    return MPI_SUCCESS;
}

inline Arguments for_send(const void* buffer, MPI_Count count, MPI_Datatype type, int peer, int tag,
                          MPI_Comm handle) {
    Arguments all;
    all.comm = comm_of(handle);
    if (all.comm == nullptr) [[unlikely]] {
        all.error = MPI_ERR_COMM;
    } else if (static_cast<unsigned>(peer) >= static_cast<unsigned>(all.comm->remote_size) &&
               peer != MPI_PROC_NULL) {
        all.error = MPI_ERR_RANK;
    } else if (tag < 0) {
        all.error = MPI_ERR_TAG;
    } else {
        all.error = set_payload(&all.payload, buffer, count, type);
    }
    return all;
}

// A receive and a probe may name any source and any tag.
inline bool can_receive_from(const Comm& comm, int peer) {
    return static_cast<unsigned>(peer) < static_cast<unsigned>(comm.remote_size) || peer == MPI_ANY_SOURCE ||
           peer == MPI_PROC_NULL;
}

inline Arguments for_receive(void* buffer, MPI_Count count, MPI_Datatype type, int peer, int tag, MPI_Comm handle) {
    Arguments all;
    all.comm = comm_of(handle);
    if (all.comm == nullptr) [[unlikely]] {
        all.error = MPI_ERR_COMM;
    } else if (!can_receive_from(*all.comm, peer)) {
        all.error = MPI_ERR_RANK;
    } else if (tag < 0 && tag != MPI_ANY_TAG) {
        all.error = MPI_ERR_TAG;
    } else {
        all.error = set_payload(&all.payload, buffer, count, type);
    }
    return all;
}

// What nearly all messages are: bytes in one piece, to or from a rank, every argument right. Such a call is
// answered without a record of any kind; all others, and those that cannot be done at once, take the long
// way.
inline bool is_plain(const Comm* comm, int peer, int tag, const void* buffer, MPI_Count count,
                     MPI_Datatype type) {
    return comm != nullptr && static_cast<unsigned>(peer) < static_cast<unsigned>(comm->remote_size) &&
           tag >= 0 && count >= 0 && is_basic_handle(type) && buffer != nullptr;
}

inline uint64_t bytes_of(MPI_Count count, MPI_Datatype type) {
    return static_cast<uint64_t>(count) * static_cast<uint64_t>(basic_handle_size(type));
}

// True when the message is away.
[[nodiscard]] inline bool send_plain(const void* buffer, MPI_Count count, MPI_Datatype type, int peer, int tag,
                                     MPI_Comm handle) {
    Comm* comm = comm_of(handle);
    if (!is_plain(comm, peer, tag, buffer, count, type)) [[unlikely]]
        return false;
    process_t* process = comm->peers[peer];
    return process->p_proto->pt_fsend(process, buffer, bytes_of(count, type), nullptr, tag,
                                      &comm->channels[0], MPIP_MODE_STANDARD | MPIP_MODE_TRY) == MPIP_SUCCESS;
}

// Success does not even make a call.
[[nodiscard]] inline int answer(Comm* comm, int error, const char* function) {
    return error == MPI_SUCCESS ? MPI_SUCCESS : raise(comm, error, function);
}

}  // namespace viaduct::mpi
