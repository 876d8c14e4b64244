// SPDX-License-Identifier: BSD-2-Clause
// Data of other layers that has to be told what ours is.
#pragma once

namespace viaduct::mpi {

// The module mpi_f08 asks C variables for MPI_UNWEIGHTED and MPI_WEIGHTS_EMPTY, and the packaged layer has some of its
// own, empty ones, which come before ours in a program: MPI_Init fills those, as MPICH's does.
void tell_fortran();

}  // namespace viaduct::mpi
