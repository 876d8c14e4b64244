// SPDX-License-Identifier: BSD-2-Clause
// How an MPI function is exported: the function is PMPI_X, and MPI_X a weak second name that a tool may replace.
// Inside the library nothing calls MPI_X, so that a tool sees the program's calls and no others.
#pragma once

#include <mpi.h>

#include <type_traits>

// Write before the definition of PMPI_X: VIADUCT_MPI_EXPORT(MPI_X). A definition inside a namespace does not know what
// mpi.h says about visibility: it begins with VIADUCT_MPI_FUNCTION.
#define VIADUCT_MPI_EXPORT(name)                             \
    extern "C" std::remove_reference_t<decltype(name)> name \
        __attribute__((weak, visibility("default"), alias("P" #name)));
#define VIADUCT_MPI_FUNCTION extern "C" __attribute__((visibility("default"))) int

// The functions that count items exist twice: with int, and, as MPI_X_c, with counts and displacements of 64 bits.
// VIADUCT_MPI_COUNTED defines both from one body, which says Count and Displacement: write it outside of namespaces.
namespace viaduct::mpi::narrow {
using Count = int;
using Displacement = int;
}  // namespace viaduct::mpi::narrow
namespace viaduct::mpi::wide {
using Count = MPI_Count;
using Displacement = MPI_Aint;
}  // namespace viaduct::mpi::wide

#define VIADUCT_MPI_COUNTED(name, parameters, ...) \
    namespace viaduct::mpi::narrow {               \
    VIADUCT_MPI_EXPORT(MPI_##name)                 \
    VIADUCT_MPI_FUNCTION PMPI_##name parameters    \
        __VA_ARGS__                                \
    }                                              \
    namespace viaduct::mpi::wide {                 \
    VIADUCT_MPI_EXPORT(MPI_##name##_c)             \
    VIADUCT_MPI_FUNCTION PMPI_##name##_c parameters \
        __VA_ARGS__                                \
    }
