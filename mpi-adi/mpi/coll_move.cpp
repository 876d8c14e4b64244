// SPDX-License-Identifier: BSD-2-Clause
// Collective MPI functions that move data without computing, and barriers. Each checks its arguments and adds the
// steps of an algorithm (coll::) to a schedule (docs/mpi-engine.md). collective.hpp has the checks and takes the
// engine's lock.
#include "mpi-adi/mpi/collective.hpp"

namespace viaduct::mpi {
namespace {

// The number of parts of a buffer that has one for each process of the (remote) group.
int partners(const Communicator& comm) { return comm.remote_size; }

// Whether this process gives or takes a share: not a root between groups or its neighbours, nor a root in place.
bool has_share(const Communicator& comm, const void* buffer, int root) {
    return comm.inter ? root >= 0 : root != comm.rank || buffer != MPI_IN_PLACE;
}

// The root, and what this process gives to it or takes from it, if it does.
int check_share(Schedule& s, int root, const void* buffer, MPI_Count count, MPI_Datatype handle,
                const Datatype** type) {
    if (const int error = check_root(s.comm(), root)) {
        return error;
    }
    return has_share(s.comm(), buffer, root) ? check_own_data(s, buffer, count, handle, type) : MPI_SUCCESS;
}

}  // namespace
}  // namespace viaduct::mpi

using namespace viaduct::mpi;

VIADUCT_MPI(Barrier, (MPI_Comm comm)) {
    if (Communicator* plain = comm_of(comm); plain != nullptr && !plain->inter && plain->direct) {
        Call call("MPI_Barrier", plain);
        comm_retain(*plain);  // a callback of the program may free it meanwhile
        const int error = coll::barrier_at_once(*plain);
        comm_release(*plain);
        return call.result(error);
    }
    return run_collective("MPI_Barrier", comm, [](Schedule& s) {
        coll::barrier(s);
        return MPI_SUCCESS;
    });
} VIADUCT_MPI_CATCH(comm)

VIADUCT_MPI(Ibarrier, (MPI_Comm comm, MPI_Request* request)) {
    return start_collective("MPI_Ibarrier", comm, request, [](Schedule& s) {
        coll::barrier(s);
        return MPI_SUCCESS;
    });
} VIADUCT_MPI_CATCH(comm)

VIADUCT_MPI(Barrier_init, (MPI_Comm comm, MPI_Info info, MPI_Request* request)) {
    return keep_collective("MPI_Barrier_init", comm, info, request, [](Schedule& s) {
        coll::barrier(s);
        return MPI_SUCCESS;
    });
} VIADUCT_MPI_CATCH(comm)

VIADUCT_MPI_COLLECTIVE(Bcast, Ibcast, (void* buffer, Count count, MPI_Datatype datatype, int root), {
    const Datatype* type = nullptr;
    VIADUCT_CHECK(check_root(s.comm(), root))
    if (root == MPI_PROC_NULL) {
        return MPI_SUCCESS;  // a process of the root's group that is not the root: its arguments do not count
    }
    VIADUCT_CHECK(check_in_place(buffer, false))
    VIADUCT_CHECK(check_data(s, buffer, count, datatype, &type))
    coll::bcast(s, {buffer, count, type}, root);
    return MPI_SUCCESS;
})

VIADUCT_MPI_COLLECTIVE(Gather, Igather,
                       (const void* sendbuf, Count sendcount, MPI_Datatype sendtype, void* recvbuf, Count recvcount,
                        MPI_Datatype recvtype, int root),
                       {
                           const Datatype* in = nullptr;
                           const Datatype* out = nullptr;
                           VIADUCT_CHECK(check_share(s, root, sendbuf, sendcount, sendtype, &in))
                           if (at_root(s.comm(), root)) {
                               VIADUCT_CHECK(check_own_data(s, recvbuf, recvcount, recvtype, &out))
                               VIADUCT_CHECK(check_apart(s.comm(), sendbuf, sendcount, recvbuf,
                                                         s.rank() * MPI_Count(recvcount), out, recvcount))
                           }
                           coll::gather(s, {sendbuf, sendcount, in}, equal(recvbuf, recvcount, out), root);
                           return MPI_SUCCESS;
                       })

VIADUCT_MPI_COLLECTIVE(Gatherv, Igatherv,
                       (const void* sendbuf, Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                        const Count recvcounts[], const Displacement displs[], MPI_Datatype recvtype, int root),
                       {
                           const Datatype* in = nullptr;
                           const Datatype* out = nullptr;
                           VIADUCT_CHECK(check_share(s, root, sendbuf, sendcount, sendtype, &in))
                           int n = at_root(s.comm(), root) ? partners(s.comm()) : 0;
                           if (n) {
                               VIADUCT_CHECK(check_shares(s, recvbuf, recvcounts, displs, n, recvtype, &out))
                               VIADUCT_CHECK(check_in_place(recvbuf, false))
                               VIADUCT_CHECK(
                                   check_apart(s.comm(), sendbuf, sendcount, recvbuf, recvcounts, displs, out))
                           }
                           coll::gather(s, {sendbuf, sendcount, in}, unequal(recvbuf, recvcounts, displs, n, out),
                                        root);
                           return MPI_SUCCESS;
                       })

VIADUCT_MPI_COLLECTIVE(Scatter, Iscatter,
                       (const void* sendbuf, Count sendcount, MPI_Datatype sendtype, void* recvbuf, Count recvcount,
                        MPI_Datatype recvtype, int root),
                       {
                           const Datatype* in = nullptr;
                           const Datatype* out = nullptr;
                           VIADUCT_CHECK(check_share(s, root, recvbuf, recvcount, recvtype, &out))
                           if (at_root(s.comm(), root)) {
                               VIADUCT_CHECK(check_own_data(s, sendbuf, sendcount, sendtype, &in))
                               VIADUCT_CHECK(check_apart(s.comm(), recvbuf, recvcount, sendbuf,
                                                         s.rank() * MPI_Count(sendcount), in, sendcount))
                           }
                           coll::scatter(s, equal(sendbuf, sendcount, in), {recvbuf, recvcount, out}, root);
                           return MPI_SUCCESS;
                       })

VIADUCT_MPI_COLLECTIVE(
    Scatterv, Iscatterv,
    (const void* sendbuf, const Count sendcounts[], const Displacement displs[], MPI_Datatype sendtype, void* recvbuf,
     Count recvcount, MPI_Datatype recvtype, int root),
    {
        const Datatype* in = nullptr;
        const Datatype* out = nullptr;
        VIADUCT_CHECK(check_share(s, root, recvbuf, recvcount, recvtype, &out))
        int n = at_root(s.comm(), root) ? partners(s.comm()) : 0;
        if (n) {
            VIADUCT_CHECK(check_shares(s, sendbuf, sendcounts, displs, n, sendtype, &in))
            VIADUCT_CHECK(check_in_place(sendbuf, false))
            VIADUCT_CHECK(check_apart(s.comm(), recvbuf, recvcount, sendbuf, sendcounts, displs, in))
        }
        coll::scatter(s, unequal(sendbuf, sendcounts, displs, n, in), {recvbuf, recvcount, out}, root);
        return MPI_SUCCESS;
    })

VIADUCT_MPI_COLLECTIVE(Allgather, Iallgather,
                       (const void* sendbuf, Count sendcount, MPI_Datatype sendtype, void* recvbuf, Count recvcount,
                        MPI_Datatype recvtype),
                       {
                           const Datatype* in = nullptr;
                           const Datatype* out = nullptr;
                           VIADUCT_CHECK(check_in_place(sendbuf, !s.comm().inter))
                           VIADUCT_CHECK(check_in_place(recvbuf, false))
                           if (sendbuf != MPI_IN_PLACE) {
                               VIADUCT_CHECK(check_data(s, sendbuf, sendcount, sendtype, &in))
                           }
                           VIADUCT_CHECK(check_data(s, recvbuf, recvcount, recvtype, &out))
                           VIADUCT_CHECK(check_apart(s.comm(), sendbuf, sendcount, recvbuf,
                                                     s.rank() * MPI_Count(recvcount), out, recvcount))
                           coll::allgather(s, {sendbuf, sendcount, in}, equal(recvbuf, recvcount, out));
                           return MPI_SUCCESS;
                       })

VIADUCT_MPI_COLLECTIVE(Allgatherv, Iallgatherv,
                       (const void* sendbuf, Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                        const Count recvcounts[], const Displacement displs[], MPI_Datatype recvtype),
                       {
                           const Datatype* in = nullptr;
                           const Datatype* out = nullptr;
                           int n = partners(s.comm());
                           VIADUCT_CHECK(check_in_place(sendbuf, !s.comm().inter))
                           VIADUCT_CHECK(check_in_place(recvbuf, false))
                           if (sendbuf != MPI_IN_PLACE) {
                               VIADUCT_CHECK(check_data(s, sendbuf, sendcount, sendtype, &in))
                           }
                           VIADUCT_CHECK(check_shares(s, recvbuf, recvcounts, displs, n, recvtype, &out))
                           VIADUCT_CHECK(check_apart(s.comm(), sendbuf, sendcount, recvbuf, recvcounts, displs, out))
                           coll::allgather(s, {sendbuf, sendcount, in}, unequal(recvbuf, recvcounts, displs, n, out));
                           return MPI_SUCCESS;
                       })

VIADUCT_MPI_COLLECTIVE(Alltoall, Ialltoall,
                       (const void* sendbuf, Count sendcount, MPI_Datatype sendtype, void* recvbuf, Count recvcount,
                        MPI_Datatype recvtype),
                       {
                           const Datatype* in = nullptr;
                           const Datatype* out = nullptr;
                           VIADUCT_CHECK(check_in_place(sendbuf, !s.comm().inter))
                           VIADUCT_CHECK(check_in_place(recvbuf, false))
                           if (sendbuf != MPI_IN_PLACE) {
                               VIADUCT_CHECK(check_data(s, sendbuf, sendcount, sendtype, &in))
                           }
                           VIADUCT_CHECK(check_data(s, recvbuf, recvcount, recvtype, &out))
                           VIADUCT_CHECK(check_apart(s.comm(), sendbuf, sendcount, recvbuf, 0, out, recvcount))
                           coll::alltoall(s, equal(sendbuf, sendcount, in), equal(recvbuf, recvcount, out));
                           return MPI_SUCCESS;
                       })

VIADUCT_MPI_COLLECTIVE(Alltoallv, Ialltoallv,
                       (const void* sendbuf, const Count sendcounts[], const Displacement sdispls[],
                        MPI_Datatype sendtype, void* recvbuf, const Count recvcounts[], const Displacement rdispls[],
                        MPI_Datatype recvtype),
                       {
                           const Datatype* in = nullptr;
                           const Datatype* out = nullptr;
                           int n = partners(s.comm());
                           VIADUCT_CHECK(check_in_place(sendbuf, !s.comm().inter))
                           VIADUCT_CHECK(check_in_place(recvbuf, false))
                           int sent = sendbuf == MPI_IN_PLACE ? 0 : n;
                           if (sendbuf != MPI_IN_PLACE) {
                               VIADUCT_CHECK(check_shares(s, sendbuf, sendcounts, sdispls, n, sendtype, &in))
                           }
                           VIADUCT_CHECK(check_shares(s, recvbuf, recvcounts, rdispls, n, recvtype, &out))
                           VIADUCT_CHECK(check_two_sets(s.comm(), sendbuf, sendcounts, sdispls, recvbuf, recvcounts,
                                                        rdispls, [&](int) { return out; }))
                           coll::alltoall(s, unequal(sendbuf, sendcounts, sdispls, sent, in),
                                          unequal(recvbuf, recvcounts, rdispls, n, out));
                           return MPI_SUCCESS;
                       })

VIADUCT_MPI_COLLECTIVE(Alltoallw, Ialltoallw,
                       (const void* sendbuf, const Count sendcounts[], const Displacement sdispls[],
                        const MPI_Datatype sendtypes[], void* recvbuf, const Count recvcounts[],
                        const Displacement rdispls[], const MPI_Datatype recvtypes[]),
                       {
                           int n = partners(s.comm());
                           coll::TypedShares in;
                           coll::TypedShares out;
                           VIADUCT_CHECK(check_in_place(sendbuf, !s.comm().inter))
                           VIADUCT_CHECK(check_in_place(recvbuf, false))
                           if (sendbuf == MPI_IN_PLACE) {
                               in.base = MPI_IN_PLACE;
                           } else {
                               VIADUCT_CHECK(typed(s, sendbuf, sendcounts, sdispls, sendtypes, n, &in))
                           }
                           VIADUCT_CHECK(typed(s, recvbuf, recvcounts, rdispls, recvtypes, n, &out))
                           VIADUCT_CHECK(check_two_sets(s.comm(), sendbuf, sendcounts, sdispls, recvbuf, recvcounts,
                                                        rdispls, [&](int i) { return out.types[size_t(i)]; }))
                           coll::alltoallw(s, in, out);
                           return MPI_SUCCESS;
                       })
