// SPDX-License-Identifier: BSD-2-Clause
// Operations on a few bytes of a member that is reached by messages only: each an InlineOp (wire.hpp), sent from
// where it is made. Called by origin.cpp when epoch, range and types are known to be good.
#pragma once

#include "mpi-adi/engine/rma/awaited.hpp"
#include "mpi-adi/engine/rma/origin.hpp"

namespace viaduct::mpi::rma {

// Whether the items of one side are few enough, and in one piece.
inline bool fits_inline(const Datatype& type, uint64_t bytes) { return bytes <= kInlineOpBytes && type.contiguous; }

// `bytes` bytes at that address of the member. `mine`: the program's request, or null.
void send_put(Window& window, int rank, uint64_t address, const void* data, uint64_t bytes, Request* mine);
void send_get(Window& window, int rank, uint64_t address, const Awaited& answer);
void send_accumulate(Window& window, int rank, uint64_t address, const void* data, uint64_t bytes, MPI_Op op,
                     const Datatype& element, Request* mine);
// For MPI_NO_OP data is not read.
void send_get_accumulate(Window& window, int rank, uint64_t address, const void* data, MPI_Op op,
                         const Datatype& element, const Awaited& answer);
void send_compare_swap(Window& window, int rank, uint64_t address, const void* value, const void* compare,
                       const Awaited& answer);

// The answer to the oldest of those that get something back. False: nobody waits for it, or not for this.
bool take_answer(Member& member, int error, const char* data, size_t bytes);

// The number of the flush that a put or an accumulate asks for in its own request, or 0: the first one since
// a flush does, which spares a message where it stays the only one; behind further ones the flush must ask.
// Between MPI_Win_start and MPI_Win_complete nobody waits for one, unless the target alone knows what may be
// accessed.
uint64_t ask_for_flush(const Window& window, Member& member);

// Sends an InlineOp with so many bytes of its data.
void send_parcel(Window& window, int rank, const Parcel& parcel, size_t data);

}  // namespace viaduct::mpi::rma
