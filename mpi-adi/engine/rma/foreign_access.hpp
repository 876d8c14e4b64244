// SPDX-License-Identifier: BSD-2-Clause
// One-sided operations on memory that is reached by system calls (core/process/foreign_memory.hpp). Each is done when
// it returns. Called by origin.cpp with the engine's lock held, after epoch, range and types have been checked. What
// changes elements holds the member's guard (apply.hpp) meanwhile: that may wait for another process, and ends the job
// when the holder has ended and the job does not go on. Results are MPI error classes: MPI_ERR_RMA_RANGE where some of
// the memory cannot be reached, MPIX_ERR_PROC_FAILED when the process has ended, MPI_ERR_ACCESS when the system forbids
// the calls. Rules: docs/mpi-rma.md.
#pragma once

#include "mpi-adi/engine/rma/origin.hpp"

namespace viaduct::mpi::rma {

// `bytes` of the items that begin at that address of the member.
struct ForeignItems {
    Member& member;
    uint64_t address;
    int64_t count;
    const Datatype& type;
    uint64_t bytes;
};

// MPI_SUCCESS: the member of a dynamic window has attached these bytes; MPI_ERR_RMA_RANGE: it has not.
int foreign_check_attached(Member& member, const char* from, int64_t bytes);

int foreign_put(const ForeignItems& to, const Items& origin);
int foreign_get(const ForeignItems& from, const Items& origin);
// As apply(), with `data` and `result` in one piece each.
int foreign_apply(const ForeignItems& on, MPI_Op op, const Datatype& element, const char* data, char* result);
int foreign_compare_swap(const ForeignItems& on, const void* value, const void* compare, void* result);

}  // namespace viaduct::mpi::rma
