// SPDX-License-Identifier: BSD-2-Clause
// Processes that this job starts. The launcher starts them and tells them the name of a port of the root, which they
// call in MPI_Init. From there on it is a meeting like any other (meet.hpp).
#pragma once

#include <string>
#include <vector>

#include "mpi-adi/engine/communicator.hpp"
#include "mpi-adi/rte/rte.hpp"

namespace viaduct::mpi {

// Collective over `comm`; the commands mean something at the root alone. `refused` is what the root has found wrong
// with its arguments. On success *started tells every process how many processes there are.
int spawn(Communicator& comm, int root, const std::vector<rte::Command>& commands, int refused, int* started,
          Communicator** made);

// In a process that was started so: meets the parents, in MPI_Init. Ends the job when they have ended.
void meet_parents();
// Null: there are none, or the program has freed the communicator.
Communicator* parents();

}  // namespace viaduct::mpi
