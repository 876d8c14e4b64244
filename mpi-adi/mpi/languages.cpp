// SPDX-License-Identifier: BSD-2-Clause
// What the packaged layers for C++ and Fortran (libmpichcxx, libmpichfort) tell about functions of the program that are
// not C: how they are to be called. And what programs ask about this build.
#include "mpi-adi/engine/op.hpp"
#include "mpi-adi/engine/request.hpp"
#include "mpi-adi/mpi/call.hpp"

using namespace viaduct::mpi;

#define VIADUCT_MPI_LAYER extern "C" __attribute__((visibility("default")))

VIADUCT_MPI_LAYER void MPII_Op_set_cxx(MPI_Op op, void (*proxy)()) {
    Critical guard;
    if (Operator* found = op_of(op); found && found->function) {
        found->proxy = reinterpret_cast<OperatorProxy>(proxy);
    }
}

VIADUCT_MPI_LAYER void MPII_Errhandler_set_cxx(MPI_Errhandler errhandler, void (*proxy)()) {
    Critical guard;
    if (Errhandler* found = errhandler_of(errhandler); found && found->function) {
        found->proxy = reinterpret_cast<ErrhandlerProxy>(proxy);
    }
}

VIADUCT_MPI_LAYER void MPII_Grequest_set_lang_f77(MPI_Request request) {
    Critical guard;
    if (Request* found = request_of(request); found && found->generalized) {
        found->generalized->fortran = true;
    }
}

// Buffers lie in the memory of the processor: those of accelerators cannot be sent.
VIADUCT_MPIX(GPU_query_support, (int gpu_type, int* is_supported)) {
    Call call("MPIX_GPU_query_support");
    VIADUCT_MPI_NEED(is_supported)
    if (gpu_type < 0 || gpu_type > 2) {
        return call.result(MPI_ERR_ARG);
    }
    *is_supported = 0;
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPIX(Query_cuda_support, ()) { return 0; } VIADUCT_MPI_CATCH()
VIADUCT_MPIX(Query_ze_support, ()) { return 0; } VIADUCT_MPI_CATCH()
VIADUCT_MPIX(Query_hip_support, ()) { return 0; } VIADUCT_MPI_CATCH()
