// SPDX-License-Identifier: BSD-2-Clause
// MPICH's calls for jobs that outlive their processes. Here a job ends with the first process that dies, so
// among those that are left nobody has failed, and there is nothing to be revoked.
#include "mpi-adi/engine/coll/coll.hpp"
#include "mpi-adi/engine/make_comm.hpp"
#include "mpi-adi/mpi/call.hpp"

namespace viaduct::mpi {
namespace {

int combine(Communicator& comm, int* flag) {
    Schedule s(comm);
    int combined = 0;
    coll::allreduce(s, flag, &combined, 1, *type_of(MPI_INT), *op_of(MPI_BAND));
    const int error = s.run();
    if (error == MPI_SUCCESS) *flag = combined;
    return error;
}

}  // namespace
}  // namespace viaduct::mpi

using namespace viaduct::mpi;

// The flags of all, combined bit by bit.
VIADUCT_MPIX(Comm_agree, (MPI_Comm comm, int* flag)) {
    Communicator* found = comm_of(comm);
    Call call("MPIX_Comm_agree", found);
    if (found == nullptr) return call.result(MPI_ERR_COMM);
    VIADUCT_MPI_NEED(flag)
    int others = *flag;
    if (const int error = combine(*found, &others)) return call.result(error);
    if (!found->inter) {
        *flag = others;
        return MPI_SUCCESS;
    }
    // That were the flags of the other group: with ours they go back, and theirs with ours come.
    int all = *flag & others;
    if (const int error = combine(*found, &all)) return call.result(error);
    *flag = all;
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH(comm)

VIADUCT_MPIX(Comm_shrink, (MPI_Comm comm, MPI_Comm* newcomm)) {
    Communicator* found = comm_of(comm);
    Call call("MPIX_Comm_shrink", found);
    if (found == nullptr) return call.result(MPI_ERR_COMM);
    VIADUCT_MPI_NEED(newcomm)
    Communicator* made = nullptr;
    const int error = comm_split(*found, 0, found->rank, MPI_SUCCESS, &made);
    *newcomm = error == MPI_SUCCESS ? made->handle : MPI_COMM_NULL;
    return call.result(error);
} VIADUCT_MPI_CATCH(comm)

VIADUCT_MPIX(Comm_failure_ack, (MPI_Comm comm)) {
    Communicator* found = comm_of(comm);
    Call call("MPIX_Comm_failure_ack", found);
    return call.result(found != nullptr ? MPI_SUCCESS : MPI_ERR_COMM);
} VIADUCT_MPI_CATCH(comm)

VIADUCT_MPIX(Comm_failure_get_acked, (MPI_Comm comm, MPI_Group* failed)) {
    Communicator* found = comm_of(comm);
    Call call("MPIX_Comm_failure_get_acked", found);
    if (found == nullptr) return call.result(MPI_ERR_COMM);
    VIADUCT_MPI_NEED(failed)
    *failed = MPI_GROUP_EMPTY;
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH(comm)

VIADUCT_MPIX(Comm_revoke, (MPI_Comm comm)) {
    Communicator* found = comm_of(comm);
    Call call("MPIX_Comm_revoke", found);
    return call.result(found != nullptr ? MPI_ERR_UNSUPPORTED_OPERATION : MPI_ERR_COMM);
} VIADUCT_MPI_CATCH(comm)
