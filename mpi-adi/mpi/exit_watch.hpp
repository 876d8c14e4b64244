// SPDX-License-Identifier: BSD-2-Clause
// The end of a process that calls exit() without MPI_Finalize.
#pragma once

namespace viaduct::mpi {

// Called once, by the call that starts the job: the code that the program gives to exit() is known at its end.
void watch_exit_code();

}  // namespace viaduct::mpi
