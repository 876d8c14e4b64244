// SPDX-License-Identifier: BSD-2-Clause
// Collective MPI functions with the neighbours of a topology.
#include "mpi-adi/mpi/collective.hpp"

namespace viaduct::mpi {
namespace {

using coll::Shares;
using coll::TypedShares;

int check_topology(const Communicator& comm) { return comm.topology ? MPI_SUCCESS : MPI_ERR_TOPOLOGY; }
int sources(const Communicator& comm) { return int(comm.topology->sources.size()); }
int destinations(const Communicator& comm) { return int(comm.topology->destinations.size()); }

Shares equal(const void* base, MPI_Count count, const Datatype* type) {
    return {const_cast<void*>(base), {}, {}, count, type};
}

Shares unequal(const void* base, const int* counts, const int* displacements, int n, const Datatype* type) {
    return {const_cast<void*>(base), {counts, size_t(n)}, {displacements, size_t(n)}, 0, type, n > 0};
}

int typed(Schedule& s, const void* base, const int* counts, const MPI_Aint* displacements, const MPI_Datatype* types,
          int n, TypedShares* shares) {
    *shares = {const_cast<void*>(base), {counts, size_t(n)}, {displacements, size_t(n)}, {}};
    for (int i = 0; i < n; ++i) {
        const Datatype* type = nullptr;
        VIADUCT_CHECK(check_data(s, MPI_IN_PLACE, counts[i], types[i], &type))
        shares->types.push_back(type);
    }
    return MPI_SUCCESS;
}

}  // namespace
}  // namespace viaduct::mpi

using namespace viaduct::mpi;

VIADUCT_MPI_COLLECTIVE(Neighbor_allgather, Ineighbor_allgather,
                       (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                        MPI_Datatype recvtype),
                       {
                           const Datatype* in = nullptr;
                           const Datatype* out = nullptr;
                           VIADUCT_CHECK(check_topology(s.comm()))
                           VIADUCT_CHECK(check_data(s, sendbuf, sendcount, sendtype, &in))
                           VIADUCT_CHECK(check_data(s, recvbuf, recvcount, recvtype, &out))
                           coll::neighbour_allgather(s, {sendbuf, sendcount, in}, equal(recvbuf, recvcount, out));
                           return MPI_SUCCESS;
                       })

VIADUCT_MPI_COLLECTIVE(Neighbor_allgatherv, Ineighbor_allgatherv,
                       (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                        const int recvcounts[], const int displs[], MPI_Datatype recvtype),
                       {
                           const Datatype* in = nullptr;
                           const Datatype* out = nullptr;
                           VIADUCT_CHECK(check_topology(s.comm()))
                           int n = sources(s.comm());
                           VIADUCT_CHECK(check_data(s, sendbuf, sendcount, sendtype, &in))
                           VIADUCT_CHECK(check_counts(s, recvcounts, n, recvtype, &out))
                           coll::neighbour_allgather(s, {sendbuf, sendcount, in},
                                                     unequal(recvbuf, recvcounts, displs, n, out));
                           return MPI_SUCCESS;
                       })

VIADUCT_MPI_COLLECTIVE(Neighbor_alltoall, Ineighbor_alltoall,
                       (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                        MPI_Datatype recvtype),
                       {
                           const Datatype* in = nullptr;
                           const Datatype* out = nullptr;
                           VIADUCT_CHECK(check_topology(s.comm()))
                           VIADUCT_CHECK(check_data(s, sendbuf, sendcount, sendtype, &in))
                           VIADUCT_CHECK(check_data(s, recvbuf, recvcount, recvtype, &out))
                           coll::neighbour_alltoall(s, equal(sendbuf, sendcount, in), equal(recvbuf, recvcount, out));
                           return MPI_SUCCESS;
                       })

VIADUCT_MPI_COLLECTIVE(Neighbor_alltoallv, Ineighbor_alltoallv,
                       (const void* sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype,
                        void* recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype),
                       {
                           const Datatype* in = nullptr;
                           const Datatype* out = nullptr;
                           VIADUCT_CHECK(check_topology(s.comm()))
                           int sent = destinations(s.comm());
                           int received = sources(s.comm());
                           VIADUCT_CHECK(check_counts(s, sendcounts, sent, sendtype, &in))
                           VIADUCT_CHECK(check_counts(s, recvcounts, received, recvtype, &out))
                           coll::neighbour_alltoall(s, unequal(sendbuf, sendcounts, sdispls, sent, in),
                                                    unequal(recvbuf, recvcounts, rdispls, received, out));
                           return MPI_SUCCESS;
                       })

VIADUCT_MPI_COLLECTIVE(Neighbor_alltoallw, Ineighbor_alltoallw,
                       (const void* sendbuf, const int sendcounts[], const MPI_Aint sdispls[],
                        const MPI_Datatype sendtypes[], void* recvbuf, const int recvcounts[], const MPI_Aint rdispls[],
                        const MPI_Datatype recvtypes[]),
                       {
                           TypedShares in;
                           TypedShares out;
                           VIADUCT_CHECK(check_topology(s.comm()))
                           VIADUCT_CHECK(typed(s, sendbuf, sendcounts, sdispls, sendtypes, destinations(s.comm()), &in))
                           VIADUCT_CHECK(typed(s, recvbuf, recvcounts, rdispls, recvtypes, sources(s.comm()), &out))
                           coll::neighbour_alltoallw(s, in, out);
                           return MPI_SUCCESS;
                       })
