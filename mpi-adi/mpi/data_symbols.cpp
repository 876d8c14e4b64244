// SPDX-License-Identifier: BSD-2-Clause
// Data that programs and the packaged Fortran layer (libmpichfort.so.12) find by name and compare by address:
// the ten symbols of spec/mpi 3.3. Written at the start of the job only; no lock.
#include "mpi-adi/mpi/data_symbols.hpp"

#include <dlfcn.h>

#include "mpi-adi/mpi/export.hpp"

#define VIADUCT_MPI_DATA extern "C" __attribute__((visibility("default")))

namespace {

int unweighted;
int weights_empty;

}  // namespace

extern "C" {

int* const MPI_UNWEIGHTED = &unweighted;
int* const MPI_WEIGHTS_EMPTY = &weights_empty;

// The Fortran layer writes the addresses of its own constants here.
MPI_Fint* MPI_F_STATUS_IGNORE = nullptr;
MPI_Fint* MPI_F_STATUSES_IGNORE = nullptr;

VIADUCT_MPI_DATA MPI_F08_status MPIR_F08_MPI_STATUS_IGNORE_OBJ;
VIADUCT_MPI_DATA MPI_F08_status MPIR_F08_MPI_STATUSES_IGNORE_OBJ[1];
VIADUCT_MPI_DATA int MPIR_F08_MPI_IN_PLACE;
VIADUCT_MPI_DATA int MPIR_F08_MPI_BOTTOM;
VIADUCT_MPI_DATA int* MPIR_C_MPI_UNWEIGHTED;
VIADUCT_MPI_DATA int* MPIR_C_MPI_WEIGHTS_EMPTY;

MPI_F08_status MPIR_F08_MPI_STATUS_IGNORE_OBJ;
MPI_F08_status MPIR_F08_MPI_STATUSES_IGNORE_OBJ[1];
int MPIR_F08_MPI_IN_PLACE;
int MPIR_F08_MPI_BOTTOM;
int* MPIR_C_MPI_UNWEIGHTED = &unweighted;
int* MPIR_C_MPI_WEIGHTS_EMPTY = &weights_empty;

MPI_F08_status* MPI_F08_STATUS_IGNORE = &MPIR_F08_MPI_STATUS_IGNORE_OBJ;
MPI_F08_status* MPI_F08_STATUSES_IGNORE = &MPIR_F08_MPI_STATUSES_IGNORE_OBJ[0];

}  // extern "C"

// The variables are looked up by name in the search order of the program (dlopen of null). A direct use, or
// RTLD_DEFAULT, would find the definitions of this library first.
void viaduct::mpi::tell_fortran() {
    void* const program = ::dlopen(nullptr, RTLD_LAZY);
    if (program == nullptr) return;
    const auto fill = [program](const char* name, int* value) {
        if (auto** const first = static_cast<int**>(::dlsym(program, name)); first != nullptr) *first = value;
    };
    fill("MPIR_C_MPI_UNWEIGHTED", MPI_UNWEIGHTED);
    fill("MPIR_C_MPI_WEIGHTS_EMPTY", MPI_WEIGHTS_EMPTY);
    ::dlclose(program);
}
