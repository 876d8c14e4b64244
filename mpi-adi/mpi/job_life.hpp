// SPDX-License-Identifier: BSD-2-Clause
// When the job begins and ends: the world model (MPI_Init, MPI_Finalize) and every session use one and the same job.
#pragma once

namespace viaduct::mpi {

// Starts the job unless it runs already. Blocks until all processes of the job have come here for the first time.
// MPI_ERR_OTHER when the job has been left for good. Thread-safe.
[[nodiscard]] int enter_job(int thread_level);

// MPI_Finalize leaves the job when no session is open. The last session does not, because another one may be opened
// later: then the job ends with the process. Called with the engine's lock held.
enum class Leaving { world, session };
[[nodiscard]] int exit_job(Leaving what);

// Between MPI_Init and MPI_Finalize.
bool is_in_world_model();
// The same for a session. Called in the world model, with the engine's lock held.
bool session_is_open();

// The level of thread support that the job has by now.
int thread_level();

}  // namespace viaduct::mpi
