// SPDX-License-Identifier: BSD-2-Clause
// "external32", the one form of data that all MPI libraries share (MPI 4.0, 14.5.2): big-endian, without gaps, with
// sizes of its own for a few types.
#pragma once

#include "mpi-adi/engine/datatype.hpp"

namespace viaduct::mpi {

// Bytes that a basic element takes, and that `count` items of any type take.
int external_size(const Datatype& basic);
MPI_Aint external_bytes(const Datatype& type, MPI_Count count);

void external_pack(const Datatype& type, MPI_Count count, const void* base, char* out);
// No more than `bytes` bytes of the form are there; what they made in memory, in bytes of data.
uint64_t external_unpack(const Datatype& type, MPI_Count count, void* base, const char* in, uint64_t bytes);

}  // namespace viaduct::mpi
