// SPDX-License-Identifier: BSD-2-Clause
// What requests wait for, in the words of wait_page.hpp.
#pragma once

#include "mpi-adi/engine/wait_page.hpp"

namespace viaduct::mpi {

struct Comm;
struct Request;

// Adds the peers of a request that is not done.
void add_awaited(const Request& request, Awaited& what);
// Adds the members of the other side: all of them for MPI_ANY_SOURCE, of which one is enough, or one.
void add_awaited_source(const Comm& comm, int source, int tag, Awaited& what);
void add_awaited_member(const Comm& comm, int rank, Awaited& what);
// Some other member of a window: which one is not known, for nothing but a word of shared memory tells of it.
void add_awaited_members(const Comm& comm, Awaited& what);

}  // namespace viaduct::mpi
