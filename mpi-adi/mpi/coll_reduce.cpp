// SPDX-License-Identifier: BSD-2-Clause
// Collective MPI functions that reduce.
#include "mpi-adi/mpi/collective.hpp"

namespace viaduct::mpi {
namespace {

// What all reductions check: data, operator, and whether MPI_IN_PLACE is allowed.
int check_reduction(Schedule& s, const void* sendbuf, const void* recvbuf, MPI_Count count, MPI_Datatype datatype,
                    MPI_Op op, const Datatype** type, Operator** found) {
    VIADUCT_CHECK(check_in_place(sendbuf, !s.comm().inter))
    if (!type_of(datatype)) {  // an operator is checked for it even when there is nothing to reduce
        return MPI_ERR_TYPE;
    }
    VIADUCT_CHECK(check_data(s, sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf, count, datatype, type))
    VIADUCT_CHECK(check_op(s, op, **type, found))
    return count > 0 && sendbuf == recvbuf && sendbuf && (*type)->size > 0 ? MPI_ERR_BUFFER : MPI_SUCCESS;
}

// Where a result goes has to be somewhere.
int check_result(const void* recvbuf, MPI_Count count, const Datatype& type) {
    VIADUCT_CHECK(check_in_place(recvbuf, false))
    return !recvbuf && count > 0 && type.builtin ? MPI_ERR_BUFFER : MPI_SUCCESS;
}

template <typename Count>
int fill_reduce_scatter(Schedule& s, const void* sendbuf, void* recvbuf, const Count* counts, MPI_Datatype datatype,
                        MPI_Op op) {
    const Datatype* type = nullptr;
    Operator* found = nullptr;
    VIADUCT_CHECK(check_counts(s, counts, s.comm().size, datatype, &type))
    const bool some = std::any_of(counts, counts + s.comm().size, [](Count count) { return count > 0; });
    VIADUCT_CHECK(check_reduction(s, sendbuf, recvbuf, some, datatype, op, &type, &found))
    VIADUCT_CHECK(check_result(recvbuf, counts[s.rank()], *type))
    coll::reduce_scatter(s, sendbuf, recvbuf, {counts, size_t(s.comm().size)}, *type, *found);
    return MPI_SUCCESS;
}

int fill_scan(Schedule& s, const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
              bool exclusive) {
    const Datatype* type = nullptr;
    Operator* found = nullptr;
    if (s.comm().inter) {
        return MPI_ERR_COMM;
    }
    const bool gets = !exclusive || s.rank() > 0;
    const bool in_place = sendbuf == MPI_IN_PLACE;
    VIADUCT_CHECK(check_reduction(s, sendbuf, gets || in_place ? recvbuf : nullptr, count, datatype, op, &type, &found))
    if (gets) {
        VIADUCT_CHECK(check_result(recvbuf, count, *type))
    }
    coll::scan(s, sendbuf, recvbuf, count, *type, *found, exclusive);
    return MPI_SUCCESS;
}

}  // namespace
}  // namespace viaduct::mpi

using namespace viaduct::mpi;

VIADUCT_MPI_COLLECTIVE(Reduce, Ireduce,
                       (const void* sendbuf, void* recvbuf, Count count, MPI_Datatype datatype, MPI_Op op, int root), {
                           const Datatype* type = nullptr;
                           Operator* found = nullptr;
                           VIADUCT_CHECK(check_root(s.comm(), root))
                           if (root == MPI_PROC_NULL) {
                               return MPI_SUCCESS;  // beside the root: no argument means anything
                           }
                           bool here = at_root(s.comm(), root);
                           bool idle = root == MPI_ROOT;  // has no data to give
                           VIADUCT_CHECK(check_in_place(sendbuf, here))
                           VIADUCT_CHECK(check_reduction(s, idle ? recvbuf : sendbuf, here && !idle ? recvbuf : nullptr,
                                                         count, datatype, op, &type, &found))
                           if (here) {
                               VIADUCT_CHECK(check_result(recvbuf, count, *type))
                           }
                           coll::reduce(s, sendbuf, recvbuf, count, *type, *found, root);
                           return MPI_SUCCESS;
                       })

VIADUCT_MPI_COLLECTIVE_OR_AT_ONCE(Allreduce, Iallreduce,
                       (const void* sendbuf, void* recvbuf, Count count, MPI_Datatype datatype, MPI_Op op),
                       coll::allreduce_at_once(plain, sendbuf, recvbuf, count, datatype, op, error), {
                           const Datatype* type = nullptr;
                           Operator* found = nullptr;
                           VIADUCT_CHECK(check_reduction(s, sendbuf, recvbuf, count, datatype, op, &type, &found))
                           VIADUCT_CHECK(check_result(recvbuf, count, *type))
                           coll::allreduce(s, sendbuf, recvbuf, count, *type, *found);
                           return MPI_SUCCESS;
                       })

VIADUCT_MPI_COLLECTIVE(Reduce_scatter, Ireduce_scatter,
                       (const void* sendbuf, void* recvbuf, const Count recvcounts[], MPI_Datatype datatype, MPI_Op op),
                       { return fill_reduce_scatter(s, sendbuf, recvbuf, recvcounts, datatype, op); })

VIADUCT_MPI_COLLECTIVE(Reduce_scatter_block, Ireduce_scatter_block,
                       (const void* sendbuf, void* recvbuf, Count recvcount, MPI_Datatype datatype, MPI_Op op), {
                           std::vector<MPI_Count> counts(size_t(s.comm().size), recvcount);
                           return fill_reduce_scatter(s, sendbuf, recvbuf, counts.data(), datatype, op);
                       })

VIADUCT_MPI_COLLECTIVE(Scan, Iscan,
                       (const void* sendbuf, void* recvbuf, Count count, MPI_Datatype datatype, MPI_Op op),
                       { return fill_scan(s, sendbuf, recvbuf, count, datatype, op, false); })

VIADUCT_MPI_COLLECTIVE(Exscan, Iexscan,
                       (const void* sendbuf, void* recvbuf, Count count, MPI_Datatype datatype, MPI_Op op),
                       { return fill_scan(s, sendbuf, recvbuf, count, datatype, op, true); })
