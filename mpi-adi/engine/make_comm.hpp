// SPDX-License-Identifier: BSD-2-Clause
// Making communicators out of others: what the members must agree on travels by collective operations of the parent,
// and the context of the new one is a number that its first member gives away.
//
// `refused` is what this process has found wrong with its arguments before the call. It takes part all the same, with
// nothing to contribute: so the error reaches those that would otherwise wait, and all of them fail. A process returns
// its own error where it has one, else that of the first that has.
#pragma once

#include "mpi-adi/engine/communicator.hpp"

namespace viaduct::mpi {

// Attributes and topology of the old one are copied to a duplicate; a copy function that fails counts as `refused`. A
// process that refuses nothing returns the largest error of its side, else of the other side. On failure nothing is
// left behind.
[[nodiscard]] int comm_dup(Communicator& old, const Info* hints, int refused, Communicator** made);
// The same with a request: *newcomm is valid when it is complete. A process that refuses gets its error at once and no
// request; the others get theirs from the request.
[[nodiscard]] int comm_idup(Communicator& old, const Info* hints, int refused, MPI_Comm* newcomm, Request** request);
// All members of `old` call; null for those not in the group.
[[nodiscard]] int comm_create(Communicator& old, const Group& group, int refused, Communicator** made);
// Only members of the group call; tag tells calls apart that overlap.
[[nodiscard]] int comm_create_group(Communicator& old, Group& group, int tag, int refused, Communicator** made);
// Color MPI_UNDEFINED: null.
[[nodiscard]] int comm_split(Communicator& old, int color, int key, int refused, Communicator** made);

// `refused` counts at the leader, which tells the other side. Without `peer` it cannot, and tells its own side alone:
// that is for arguments that it would need for it (peer, remote_leader, tag).
[[nodiscard]] int intercomm_create(Communicator& local, int local_leader, Communicator* peer, int remote_leader,
                                   int tag, int refused, Communicator** made);
[[nodiscard]] int intercomm_merge(Communicator& inter, bool high, Communicator** made);

}  // namespace viaduct::mpi
