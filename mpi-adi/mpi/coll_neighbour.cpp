// SPDX-License-Identifier: BSD-2-Clause
// Collective MPI functions with the neighbours of a topology.
#include "mpi-adi/mpi/collective.hpp"

namespace viaduct::mpi {
namespace {

int check_topology(const Communicator& comm) { return comm.topology ? MPI_SUCCESS : MPI_ERR_TOPOLOGY; }
int sources(const Communicator& comm) { return int(comm.topology->sources.size()); }
int destinations(const Communicator& comm) { return int(comm.topology->destinations.size()); }

// The neighbours, and that neither buffer is in place.
int check_neighbours(const Communicator& comm, const void* sendbuf, const void* recvbuf) {
    VIADUCT_CHECK(check_topology(comm))
    VIADUCT_CHECK(check_in_place(sendbuf, false))
    return check_in_place(recvbuf, false);
}

// Equal shares, one for each of `neighbours`: those of none may be nowhere.
int check_equal(Schedule& s, int neighbours, const void* base, MPI_Count count, MPI_Datatype handle,
                const Datatype** type) {
    return check_data(s, neighbours == 0 ? MPI_IN_PLACE : base, count, handle, type);
}

}  // namespace
}  // namespace viaduct::mpi

using namespace viaduct::mpi;

VIADUCT_MPI_COLLECTIVE(Neighbor_allgather, Ineighbor_allgather,
                       (const void* sendbuf, Count sendcount, MPI_Datatype sendtype, void* recvbuf, Count recvcount,
                        MPI_Datatype recvtype),
                       {
                           const Datatype* in = nullptr;
                           const Datatype* out = nullptr;
                           VIADUCT_CHECK(check_neighbours(s.comm(), sendbuf, recvbuf))
                           const int sent = destinations(s.comm());
                           const int received = sources(s.comm());
                           VIADUCT_CHECK(check_equal(s, sent, sendbuf, sendcount, sendtype, &in))
                           VIADUCT_CHECK(check_equal(s, received, recvbuf, recvcount, recvtype, &out))
                           coll::neighbour_allgather(s, {sendbuf, sendcount, in}, equal(recvbuf, recvcount, out));
                           return MPI_SUCCESS;
                       })

VIADUCT_MPI_COLLECTIVE(Neighbor_allgatherv, Ineighbor_allgatherv,
                       (const void* sendbuf, Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                        const Count recvcounts[], const Displacement displs[], MPI_Datatype recvtype),
                       {
                           const Datatype* in = nullptr;
                           const Datatype* out = nullptr;
                           VIADUCT_CHECK(check_neighbours(s.comm(), sendbuf, recvbuf))
                           int n = sources(s.comm());
                           VIADUCT_CHECK(check_equal(s, destinations(s.comm()), sendbuf, sendcount, sendtype, &in))
                           VIADUCT_CHECK(check_shares(s, recvbuf, recvcounts, displs, n, recvtype, &out))
                           coll::neighbour_allgather(s, {sendbuf, sendcount, in},
                                                     unequal(recvbuf, recvcounts, displs, n, out));
                           return MPI_SUCCESS;
                       })

VIADUCT_MPI_COLLECTIVE(Neighbor_alltoall, Ineighbor_alltoall,
                       (const void* sendbuf, Count sendcount, MPI_Datatype sendtype, void* recvbuf, Count recvcount,
                        MPI_Datatype recvtype),
                       {
                           const Datatype* in = nullptr;
                           const Datatype* out = nullptr;
                           VIADUCT_CHECK(check_neighbours(s.comm(), sendbuf, recvbuf))
                           const int sent = destinations(s.comm());
                           const int received = sources(s.comm());
                           VIADUCT_CHECK(check_equal(s, sent, sendbuf, sendcount, sendtype, &in))
                           VIADUCT_CHECK(check_equal(s, received, recvbuf, recvcount, recvtype, &out))
                           coll::neighbour_alltoall(s, equal(sendbuf, sendcount, in), equal(recvbuf, recvcount, out));
                           return MPI_SUCCESS;
                       })

VIADUCT_MPI_COLLECTIVE(Neighbor_alltoallv, Ineighbor_alltoallv,
                       (const void* sendbuf, const Count sendcounts[], const Displacement sdispls[],
                        MPI_Datatype sendtype, void* recvbuf, const Count recvcounts[], const Displacement rdispls[],
                        MPI_Datatype recvtype),
                       {
                           const Datatype* in = nullptr;
                           const Datatype* out = nullptr;
                           VIADUCT_CHECK(check_neighbours(s.comm(), sendbuf, recvbuf))
                           int sent = destinations(s.comm());
                           int received = sources(s.comm());
                           VIADUCT_CHECK(check_shares(s, sendbuf, sendcounts, sdispls, sent, sendtype, &in))
                           VIADUCT_CHECK(check_shares(s, recvbuf, recvcounts, rdispls, received, recvtype, &out))
                           coll::neighbour_alltoall(s, unequal(sendbuf, sendcounts, sdispls, sent, in),
                                                    unequal(recvbuf, recvcounts, rdispls, received, out));
                           return MPI_SUCCESS;
                       })

VIADUCT_MPI_COLLECTIVE(Neighbor_alltoallw, Ineighbor_alltoallw,
                       (const void* sendbuf, const Count sendcounts[], const MPI_Aint sdispls[],
                        const MPI_Datatype sendtypes[], void* recvbuf, const Count recvcounts[],
                        const MPI_Aint rdispls[], const MPI_Datatype recvtypes[]),
                       {
                           coll::TypedShares in;
                           coll::TypedShares out;
                           VIADUCT_CHECK(check_neighbours(s.comm(), sendbuf, recvbuf))
                           VIADUCT_CHECK(typed(s, sendbuf, sendcounts, sdispls, sendtypes, destinations(s.comm()), &in))
                           VIADUCT_CHECK(typed(s, recvbuf, recvcounts, rdispls, recvtypes, sources(s.comm()), &out))
                           coll::neighbour_alltoallw(s, in, out);
                           return MPI_SUCCESS;
                       })
