// SPDX-License-Identifier: BSD-2-Clause
// How an MPI function is exported: the function is PMPI_X, and MPI_X a weak second name that a tool may replace.
// Inside the library nothing calls MPI_X, so that a tool sees the program's calls and no others.
#pragma once

#include <mpi.h>

#include <type_traits>

// Write before the definition of PMPI_X: VIADUCT_MPI_EXPORT(MPI_X)
#define VIADUCT_MPI_EXPORT(name) \
    extern "C" std::remove_reference_t<decltype(name)> name __attribute__((weak, alias("P" #name)));
