// SPDX-License-Identifier: BSD-2-Clause
// Variables of the packaged Fortran layer that MPI_Init has to fill.
#pragma once

namespace viaduct::mpi {

// The Fortran module mpi_f08 reads the addresses of MPI_UNWEIGHTED and MPI_WEIGHTS_EMPTY from two variables,
// MPIR_C_MPI_UNWEIGHTED and MPIR_C_MPI_WEIGHTS_EMPTY. The packaged Fortran library defines them too, as null pointers,
// and in a program its definitions come before those of this library. So the start of the job writes the addresses into
// them, as MPICH's MPI_Init does (spec/mpi 3.3). Called once, under the lock of enter_job().
void tell_fortran();

}  // namespace viaduct::mpi
