// SPDX-License-Identifier: BSD-2-Clause
// Words of other hosts changed by the NIC's atomic operations: accumulates of one element of 4 or 8 bytes, and the
// locks of members. Only where these are atomic to instructions of processors, and where all others change the word by
// such, too (Remote::words). All else is an accumulate by message. Accumulates of one origin stay in order: those by
// message wait for those of the NIC (before_message), and behind one by message all are until the next flush.
// Called with the engine's lock held, after epoch, range and types have been checked.
#pragma once

#include "mpi-adi/engine/rma/origin.hpp"

namespace viaduct::mpi::rma {

// Whether an accumulate by this operator on `bytes` bytes of such elements at this address is changed by the NIC.
[[nodiscard]] bool is_remote_word(const Member& member, MPI_Op op, const Datatype& element, uint64_t address,
                                  uint64_t bytes);
// Begins it, or does it where the NIC has no such operator. `data` has the operand, `result` gets the old value unless
// it is null.
[[nodiscard]] int remote_change(Window& window, int rank, MPI_Op op, const Datatype& element, uint64_t address,
                                const char* data, char* result, Request** request);
[[nodiscard]] bool is_remote_swap(const Member& member, size_t width, uint64_t address);
[[nodiscard]] int remote_compare_swap(Window& window, int rank, size_t width, uint64_t address, const void* value,
                                      const void* compare, void* result);

// An accumulate to that member is about to be sent.
void before_message(Window& window, int rank);

// The lock of a member. False: it, or one that may hold the lock, has failed.
[[nodiscard]] bool remote_acquire(Window& window, int rank, LockKind kind);
// All operations under the lock are done at the member first.
[[nodiscard]] int remote_release(Window& window, int rank, LockKind held);

}  // namespace viaduct::mpi::rma
