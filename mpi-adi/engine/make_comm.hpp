// SPDX-License-Identifier: BSD-2-Clause
// Making communicators out of others: what the members must agree on travels by collective operations of the parent, and
// the context of the new one is a number that its first member gives away.
#pragma once

#include "mpi-adi/engine/communicator.hpp"

namespace viaduct::mpi {

// Attributes and topology of the old one are copied to a duplicate. On failure nothing is left behind.
int comm_dup(Communicator& old, const Info* hints, Communicator** made);
// The same with a request: *newcomm is valid when it is complete.
int comm_idup(Communicator& old, const Info* hints, MPI_Comm* newcomm, Request** request);
// All members of `old` call; null for those who are not in the group.
int comm_create(Communicator& old, Group& group, Communicator** made);
// Only members of the group call; tag tells calls apart that overlap.
int comm_create_group(Communicator& old, Group& group, int tag, Communicator** made);
// Color MPI_UNDEFINED: null.
int comm_split(Communicator& old, int color, int key, Communicator** made);

int intercomm_create(Communicator& local, int local_leader, Communicator* peer, int remote_leader, int tag,
                     Communicator** made);
int intercomm_merge(Communicator& inter, bool high, Communicator** made);

}  // namespace viaduct::mpi
