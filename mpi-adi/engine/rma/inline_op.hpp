// SPDX-License-Identifier: BSD-2-Clause
// One-sided operations on up to kInlineOpBytes bytes of a member that is reached by messages only: each is sent at once
// as one InlineOp message (wire.hpp; docs/mpi-rma.md). Called by origin.cpp with the engine's lock held, after epoch,
// range and types have been checked.
#pragma once

#include "mpi-adi/engine/rma/awaited.hpp"
#include "mpi-adi/engine/rma/origin.hpp"

namespace viaduct::mpi::rma {

// Whether the data of one side is short enough and contiguous.
inline bool fits_inline(const Datatype& type, uint64_t bytes) { return bytes <= kInlineOpBytes && type.contiguous; }

// Operations on `bytes` bytes at that address of the member. `mine`: the program's request, or null.
void send_put(Window& window, int rank, uint64_t address, const void* data, uint64_t bytes, Request* mine);
void send_get(Window& window, int rank, uint64_t address, const Awaited& answer);
void send_accumulate(Window& window, int rank, uint64_t address, const void* data, uint64_t bytes, MPI_Op op,
                     const Datatype& element, Request* mine);
// For MPI_NO_OP data is not read.
void send_get_accumulate(Window& window, int rank, uint64_t address, const void* data, MPI_Op op,
                         const Datatype& element, const Awaited& answer);
void send_compare_swap(Window& window, int rank, uint64_t address, const void* value, const void* compare,
                       const Awaited& answer);

// Handles the answer to the oldest operation of the member that expects one. False: no operation expects an answer, or
// not one of that size.
[[nodiscard]] bool take_answer(Member& member, int error, const char* data, size_t bytes);

// The number of the next flush, when the put or accumulate that is about to be sent carries the request for it; else 0.
// The first one since the last flush does, which saves the flush a message when no other follows. After further ones
// the flush sends its own request. Always 0 between MPI_Win_start and MPI_Win_complete, which need no flush, except for
// dynamic windows, where only the target can tell which memory is attached.
uint64_t ask_for_flush(const Window& window, Member& member);

// Sends the InlineOp of the message and the first `data` bytes of its data.
void send_inline_message(Window& window, int rank, const InlineMessage& message, size_t data);

}  // namespace viaduct::mpi::rma
