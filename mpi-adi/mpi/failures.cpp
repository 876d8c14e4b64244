// SPDX-License-Identifier: BSD-2-Clause
// The calls for jobs that outlive their processes (user-level failure mitigation), as MPICH and Open MPI have them.
#include "mpi-adi/engine/request.hpp"
#include "mpi-adi/engine/robust/agreement.hpp"
#include "mpi-adi/engine/robust/revoke.hpp"
#include "mpi-adi/engine/robust/state.hpp"
#include "mpi-adi/mpi/call.hpp"

namespace viaduct::mpi {
namespace {

size_t count_failed(const Communicator& comm) { return comm.robust == nullptr ? 0 : comm.robust->lost.size(); }

// The members whose failure is known here, in the order in which it became known; the first `count` of them.
MPI_Group failed_group(const Communicator& comm, size_t count) {
    if (count == 0) return MPI_GROUP_EMPTY;
    std::vector<int> processes;
    for (size_t i = 0; i < count; i++) processes.push_back(comm.robust->lost[i].process);
    return group_publish(new Group(std::move(processes), world().rank));
}

}  // namespace
}  // namespace viaduct::mpi

using namespace viaduct::mpi;

#define VIADUCT_MPIX_ON_COMM(function, parameters, body)        \
    VIADUCT_MPIX(function, parameters) {                        \
        Communicator* found = comm_of(comm);                    \
        Call call("MPIX_" #function, found);                    \
        if (found == nullptr) return call.result(MPI_ERR_COMM); \
        body;                                                   \
        return MPI_SUCCESS;                                     \
    } VIADUCT_MPI_CATCH(comm)

VIADUCT_MPIX_ON_COMM(Comm_revoke, (MPI_Comm comm), { robust::revoke(*found); })

VIADUCT_MPIX_ON_COMM(Comm_is_revoked, (MPI_Comm comm, int* flag), {
    VIADUCT_MPI_NEED(flag)
    if (!robust::is_revoked(*found)) progress();  // another member may have told of it
    *flag = robust::is_revoked(*found) ? 1 : 0;
})

VIADUCT_MPIX_ON_COMM(Comm_agree, (MPI_Comm comm, int* flag), {
    VIADUCT_MPI_NEED(flag)
    return call.result(wait(robust::comm_agree(*found, flag)));
})

VIADUCT_MPIX_ON_COMM(Comm_iagree, (MPI_Comm comm, int* flag, MPI_Request* request), {
    VIADUCT_MPI_NEED(flag, request)
    if (!name_is_left()) return call.result(MPI_ERR_NO_MEM);
    return publish(robust::comm_agree(*found, flag), request);
})

VIADUCT_MPIX_ON_COMM(Comm_shrink, (MPI_Comm comm, MPI_Comm* newcomm), {
    VIADUCT_MPI_NEED(newcomm)
    return call.result(wait(robust::comm_shrink(*found, newcomm)));
})

VIADUCT_MPIX_ON_COMM(Comm_ishrink, (MPI_Comm comm, MPI_Comm* newcomm, MPI_Request* request), {
    VIADUCT_MPI_NEED(newcomm, request)
    if (!name_is_left()) return call.result(MPI_ERR_NO_MEM);
    return publish(robust::comm_shrink(*found, newcomm), request);
})

VIADUCT_MPIX_ON_COMM(Comm_failure_ack, (MPI_Comm comm), {
    if (found->robust != nullptr) robust::acknowledge(*found, count_failed(*found));
})

VIADUCT_MPIX_ON_COMM(Comm_failure_get_acked, (MPI_Comm comm, MPI_Group* failedgrp), {
    VIADUCT_MPI_NEED(failedgrp)
    *failedgrp = failed_group(*found, found->robust == nullptr ? 0 : found->robust->acknowledged);
})

VIADUCT_MPIX_ON_COMM(Comm_get_failed, (MPI_Comm comm, MPI_Group* failedgrp), {
    VIADUCT_MPI_NEED(failedgrp)
    progress();
    *failedgrp = failed_group(*found, count_failed(*found));
})

VIADUCT_MPIX_ON_COMM(Comm_ack_failed, (MPI_Comm comm, int num_to_ack, int* num_acked), {
    VIADUCT_MPI_NEED(num_acked)
    if (num_to_ack < 0) return call.result(MPI_ERR_ARG);
    if (found->robust != nullptr) {
        const size_t asked = std::min(size_t(num_to_ack), count_failed(*found));
        robust::acknowledge(*found, std::max(found->robust->acknowledged, asked));
        *num_acked = int(found->robust->acknowledged);
    } else {
        *num_acked = 0;
    }
})
