// SPDX-License-Identifier: BSD-2-Clause
// What requests wait for, in the words of wait_page.hpp.
#pragma once

#include "mpi-adi/engine/wait_page.hpp"

namespace viaduct::mpi {

struct Comm;
struct Request;

// Adds the peers of a request that is not done.
void add_awaited(const Request& request, Awaited& what);
// All members of the other side, one of which is enough, or one of them.
void add_awaited_source(const Comm& comm, int source, int tag, Awaited& what);
void add_awaited_member(const Comm& comm, int rank, Awaited& what);

}  // namespace viaduct::mpi
