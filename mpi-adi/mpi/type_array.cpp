// SPDX-License-Identifier: BSD-2-Clause
// MPI functions that make datatypes of a part of an array: subarray, and the share of a process (darray).
#include "mpi-adi/engine/datatype.hpp"
#include "mpi-adi/mpi/call.hpp"
#include "mpi-adi/mpi/type_contents.hpp"

namespace viaduct::mpi {
namespace {

template <typename Count>
int create_subarray(int n, const Count* sizes, const Count* subsizes, const Count* starts, int order,
                    MPI_Datatype oldtype, MPI_Datatype* newtype) {
    const Datatype* old = type_of(oldtype);
    if (!old) {
        return MPI_ERR_TYPE;
    }
    if (n < 1 || (order != MPI_ORDER_C && order != MPI_ORDER_FORTRAN)) {
        return MPI_ERR_ARG;
    }
    for (int d = 0; d < n; ++d) {
        if (sizes[d] < 1 || subsizes[d] < 1 || subsizes[d] > sizes[d] || starts[d] < 0 ||
            starts[d] > sizes[d] - subsizes[d]) {
            return MPI_ERR_ARG;
        }
    }
    Contents contents{MPI_COMBINER_SUBARRAY, {n}, {}, {oldtype}, {}};
    note(contents, sizes, n);
    note(contents, subsizes, n);
    note(contents, starts, n);
    note(contents, {order});
    return publish_with(
        make_subarray(std::vector<MPI_Count>(sizes, sizes + n), std::vector<MPI_Count>(subsizes, subsizes + n),
                      std::vector<MPI_Count>(starts, starts + n), order, *old),
        std::move(contents), newtype);
}

template <typename Count>
bool are_darray_arguments_valid(int size, int rank, int n, const Count* gsizes, const int* distributions,
                                const int* arguments, const int* processes, int order) {
    if (size < 1 || rank < 0 || rank >= size || n < 1 || (order != MPI_ORDER_C && order != MPI_ORDER_FORTRAN)) {
        return false;
    }
    int64_t all = 1;
    for (int d = 0; d < n; ++d) {
        bool dealt = distributions[d] == MPI_DISTRIBUTE_BLOCK || distributions[d] == MPI_DISTRIBUTE_CYCLIC;
        if (gsizes[d] < 1 || processes[d] < 1 || (!dealt && distributions[d] != MPI_DISTRIBUTE_NONE) ||
            (!dealt && processes[d] != 1) || (arguments[d] < 1 && arguments[d] != MPI_DISTRIBUTE_DFLT_DARG)) {
            return false;
        }
        all *= processes[d];
    }
    return all == size;
}

template <typename Count>
int create_darray(int size, int rank, int n, const Count* gsizes, const int* distributions, const int* arguments,
                  const int* processes, int order, MPI_Datatype oldtype, MPI_Datatype* newtype) {
    const Datatype* old = type_of(oldtype);
    if (!old) {
        return MPI_ERR_TYPE;
    }
    if (!are_darray_arguments_valid(size, rank, n, gsizes, distributions, arguments, processes, order)) {
        return MPI_ERR_ARG;
    }
    auto all = size_t(n);
    Datatype* made = nullptr;
    if (int error = make_darray(size, rank, std::vector<MPI_Count>(gsizes, gsizes + n), {distributions, all},
                                {arguments, all}, {processes, all}, order, *old, &made)) {
        return error;
    }
    Contents contents{MPI_COMBINER_DARRAY, {size, rank, n}, {}, {oldtype}, {}};
    note(contents, gsizes, n);
    for (const int* list : {distributions, arguments, processes}) {
        note(contents, list, n);
    }
    note(contents, {order});
    return publish_with(made, std::move(contents), newtype);
}

}  // namespace
}  // namespace viaduct::mpi

using namespace viaduct::mpi;

VIADUCT_MPI_COUNTED(Type_create_subarray, (int ndims, const Count sizes[], const Count subsizes[], const Count starts[],
                                           int order, MPI_Datatype oldtype, MPI_Datatype* newtype), {
    Call call("MPI_Type_create_subarray");
    VIADUCT_MPI_NEED(newtype, sizes, subsizes, starts)
    return call.result(create_subarray(ndims, sizes, subsizes, starts, order, oldtype, newtype));
})

VIADUCT_MPI_COUNTED(Type_create_darray, (int size, int rank, int ndims, const Count gsizes[], const int distribs[],
                                         const int dargs[], const int psizes[], int order, MPI_Datatype oldtype,
                                         MPI_Datatype* newtype), {
    Call call("MPI_Type_create_darray");
    VIADUCT_MPI_NEED(newtype, gsizes, distribs, dargs, psizes)
    return call.result(create_darray(size, rank, ndims, gsizes, distribs, dargs, psizes, order, oldtype, newtype));
})
