// SPDX-License-Identifier: BSD-2-Clause
// MPI functions that make datatypes: check, make, remember the arguments for MPI_Type_get_contents.
#include <algorithm>

#include "mpi-adi/engine/datatype.hpp"
#include "mpi-adi/mpi/call.hpp"

namespace viaduct::mpi {
namespace {

using Contents = Datatype::Contents;

template <typename T>
void append(std::vector<T>& to, const T* from, int n) {
    to.insert(to.end(), from, from + n);
}

bool any_negative(const int* values, int n) {
    return std::any_of(values, values + n, [](int v) { return v < 0; });
}

int finish(Datatype* made, Contents contents, MPI_Datatype* newtype) {
    *newtype = type_publish(made, std::move(contents));
    return MPI_SUCCESS;
}

int repeated(int count, int blocklength, MPI_Aint stride, bool in_items, MPI_Datatype oldtype, Contents contents,
             MPI_Datatype* newtype) {
    const Datatype* old = type_of(oldtype);
    if (count < 0) {
        return MPI_ERR_COUNT;
    }
    if (blocklength < 0) {
        return MPI_ERR_ARG;
    }
    if (!old) {
        return MPI_ERR_TYPE;
    }
    contents.types = {oldtype};
    return finish(make_repeated(count, blocklength, in_items ? stride * old->extent() : stride, *old),
                  std::move(contents), newtype);
}

// Blocks of one type. `blocklength(i)` and `displacement(i)` give those of block i, the latter in items or bytes.
template <typename Length, typename Displacement>
int blocks(int count, Length&& blocklength, Displacement&& displacement, bool in_items, MPI_Datatype oldtype,
           Contents contents, MPI_Datatype* newtype) {
    const Datatype* old = type_of(oldtype);
    if (!old) {
        return MPI_ERR_TYPE;
    }
    std::vector<Datatype::Part> parts;
    parts.reserve(size_t(count));
    for (int i = 0; i < count; ++i) {
        if (blocklength(i) < 0) {
            return MPI_ERR_ARG;
        }
        MPI_Aint at = displacement(i);
        parts.push_back({in_items ? at * old->extent() : at, blocklength(i), old});
    }
    contents.types = {oldtype};
    return finish(make_blocks(std::move(parts), false), std::move(contents), newtype);
}

int hindexed(int combiner, int count, const int* lengths, const MPI_Aint* displacements, MPI_Datatype oldtype,
             MPI_Datatype* newtype) {
    if (count < 0) {
        return MPI_ERR_COUNT;
    }
    Contents contents{combiner, {count}, {}, {}};
    append(contents.integers, lengths, count);
    append(contents.addresses, displacements, count);
    return blocks(count, [&](int i) { return lengths[i]; }, [&](int i) { return displacements[i]; }, false, oldtype,
                  std::move(contents), newtype);
}

int structure(int combiner, int count, const int* lengths, const MPI_Aint* displacements, const MPI_Datatype* types,
              MPI_Datatype* newtype) {
    if (count < 0) {
        return MPI_ERR_COUNT;
    }
    if (any_negative(lengths, count)) {
        return MPI_ERR_ARG;
    }
    std::vector<Datatype::Part> parts;
    for (int i = 0; i < count; ++i) {
        const Datatype* member = type_of(types[i]);
        if (!member) {
            return MPI_ERR_TYPE;
        }
        parts.push_back({displacements[i], lengths[i], member});
    }
    Contents contents{combiner, {count}, {}, {}};
    append(contents.integers, lengths, count);
    append(contents.addresses, displacements, count);
    append(contents.types, types, count);
    return finish(make_blocks(std::move(parts), true), std::move(contents), newtype);
}

int subarray(int n, const int* sizes, const int* subsizes, const int* starts, int order, MPI_Datatype oldtype,
             MPI_Datatype* newtype) {
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
    Contents contents{MPI_COMBINER_SUBARRAY, {n}, {}, {oldtype}};
    append(contents.integers, sizes, n);
    append(contents.integers, subsizes, n);
    append(contents.integers, starts, n);
    contents.integers.push_back(order);
    auto all = size_t(n);
    return finish(make_subarray({sizes, all}, {subsizes, all}, {starts, all}, order, *old), std::move(contents), newtype);
}

bool darray_arguments_hold(int size, int rank, int n, const int* gsizes, const int* distributions, const int* arguments,
                           const int* processes, int order) {
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

int darray(int size, int rank, int n, const int* gsizes, const int* distributions, const int* arguments,
           const int* processes, int order, MPI_Datatype oldtype, MPI_Datatype* newtype) {
    const Datatype* old = type_of(oldtype);
    if (!old) {
        return MPI_ERR_TYPE;
    }
    if (!darray_arguments_hold(size, rank, n, gsizes, distributions, arguments, processes, order)) {
        return MPI_ERR_ARG;
    }
    auto all = size_t(n);
    Datatype* made = nullptr;
    if (int error = make_darray(size, rank, {gsizes, all}, {distributions, all}, {arguments, all}, {processes, all}, order,
                                *old, &made)) {
        return error;
    }
    Contents contents{MPI_COMBINER_DARRAY, {size, rank, n}, {}, {oldtype}};
    for (const int* list : {gsizes, distributions, arguments, processes}) {
        append(contents.integers, list, n);
    }
    contents.integers.push_back(order);
    return finish(made, std::move(contents), newtype);
}

int resized(MPI_Datatype oldtype, MPI_Aint lb, MPI_Aint extent, MPI_Datatype* newtype) {
    const Datatype* old = type_of(oldtype);
    if (!old) {
        return MPI_ERR_TYPE;
    }
    return finish(make_resized(*old, lb, extent), {MPI_COMBINER_RESIZED, {}, {lb, extent}, {oldtype}}, newtype);
}

// The same type under a handle of its own. Attributes are copied as their keys say.
int duplicate(MPI_Datatype oldtype, MPI_Datatype* newtype) {
    const Datatype* old = type_of(oldtype);
    if (!old) {
        return MPI_ERR_TYPE;
    }
    Datatype* made = make_blocks({{0, 1, old}}, false);
    made->lb = old->lb;
    made->ub = old->ub;
    made->sticky_lb = old->sticky_lb;
    made->sticky_ub = old->sticky_ub;
    made->contiguous = old->contiguous;
    made->committed = old->committed;
    made->seal();
    type_publish(made, {MPI_COMBINER_DUP, {}, {}, {oldtype}});
    if (int error = old->attributes.copy_to(oldtype, made->attributes)) {
        MPI_Datatype half_made = made->handle;
        type_free(&half_made);
        *newtype = MPI_DATATYPE_NULL;
        return error;
    }
    *newtype = made->handle;
    return MPI_SUCCESS;
}

}  // namespace
}  // namespace viaduct::mpi

using namespace viaduct::mpi;

VIADUCT_MPI(Type_contiguous, (int count, MPI_Datatype oldtype, MPI_Datatype* newtype)) {
    Call call("MPI_Type_contiguous");
    if (count < 0) {
        return call.result(MPI_ERR_COUNT);
    }
    return call.result(
        repeated(1, count, 0, true, oldtype, {MPI_COMBINER_CONTIGUOUS, {count}, {}, {}}, newtype));
}

VIADUCT_MPI(Type_vector, (int count, int blocklength, int stride, MPI_Datatype oldtype, MPI_Datatype* newtype)) {
    Call call("MPI_Type_vector");
    return call.result(repeated(count, blocklength, stride, true, oldtype,
                                {MPI_COMBINER_VECTOR, {count, blocklength, stride}, {}, {}}, newtype));
}

VIADUCT_MPI(Type_create_hvector,
            (int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype, MPI_Datatype* newtype)) {
    Call call("MPI_Type_create_hvector");
    return call.result(repeated(count, blocklength, stride, false, oldtype,
                                {MPI_COMBINER_HVECTOR, {count, blocklength}, {stride}, {}}, newtype));
}

VIADUCT_MPI(Type_hvector, (int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype, MPI_Datatype* newtype)) {
    Call call("MPI_Type_hvector");
    return call.result(repeated(count, blocklength, stride, false, oldtype,
                                {MPI_COMBINER_HVECTOR, {count, blocklength}, {stride}, {}}, newtype));
}

VIADUCT_MPI(Type_indexed, (int count, const int lengths[], const int displacements[], MPI_Datatype oldtype,
                           MPI_Datatype* newtype)) {
    Call call("MPI_Type_indexed");
    if (count < 0) {
        return call.result(MPI_ERR_COUNT);
    }
    Datatype::Contents contents{MPI_COMBINER_INDEXED, {count}, {}, {}};
    append(contents.integers, lengths, count);
    append(contents.integers, displacements, count);
    return call.result(blocks(count, [&](int i) { return lengths[i]; }, [&](int i) { return MPI_Aint(displacements[i]); },
                              true, oldtype, std::move(contents), newtype));
}

VIADUCT_MPI(Type_create_hindexed, (int count, const int lengths[], const MPI_Aint displacements[], MPI_Datatype oldtype,
                                   MPI_Datatype* newtype)) {
    Call call("MPI_Type_create_hindexed");
    return call.result(hindexed(MPI_COMBINER_HINDEXED, count, lengths, displacements, oldtype, newtype));
}

VIADUCT_MPI(Type_hindexed, (int count, int lengths[], MPI_Aint displacements[], MPI_Datatype oldtype,
                            MPI_Datatype* newtype)) {
    Call call("MPI_Type_hindexed");
    return call.result(hindexed(MPI_COMBINER_HINDEXED, count, lengths, displacements, oldtype, newtype));
}

VIADUCT_MPI(Type_create_indexed_block, (int count, int blocklength, const int displacements[], MPI_Datatype oldtype,
                                        MPI_Datatype* newtype)) {
    Call call("MPI_Type_create_indexed_block");
    if (count < 0) {
        return call.result(MPI_ERR_COUNT);
    }
    Datatype::Contents contents{MPI_COMBINER_INDEXED_BLOCK, {count, blocklength}, {}, {}};
    append(contents.integers, displacements, count);
    return call.result(blocks(count, [&](int) { return blocklength; }, [&](int i) { return MPI_Aint(displacements[i]); },
                              true, oldtype, std::move(contents), newtype));
}

VIADUCT_MPI(Type_create_hindexed_block, (int count, int blocklength, const MPI_Aint displacements[], MPI_Datatype oldtype,
                                         MPI_Datatype* newtype)) {
    Call call("MPI_Type_create_hindexed_block");
    if (count < 0) {
        return call.result(MPI_ERR_COUNT);
    }
    Datatype::Contents contents{MPI_COMBINER_HINDEXED_BLOCK, {count, blocklength}, {}, {}};
    append(contents.addresses, displacements, count);
    return call.result(blocks(count, [&](int) { return blocklength; }, [&](int i) { return displacements[i]; }, false,
                              oldtype, std::move(contents), newtype));
}

VIADUCT_MPI(Type_create_struct, (int count, const int lengths[], const MPI_Aint displacements[],
                                 const MPI_Datatype types[], MPI_Datatype* newtype)) {
    Call call("MPI_Type_create_struct");
    return call.result(structure(MPI_COMBINER_STRUCT, count, lengths, displacements, types, newtype));
}

VIADUCT_MPI(Type_struct, (int count, int lengths[], MPI_Aint displacements[], MPI_Datatype types[],
                          MPI_Datatype* newtype)) {
    Call call("MPI_Type_struct");
    return call.result(structure(MPI_COMBINER_STRUCT, count, lengths, displacements, types, newtype));
}

VIADUCT_MPI(Type_create_subarray, (int ndims, const int sizes[], const int subsizes[], const int starts[], int order,
                                   MPI_Datatype oldtype, MPI_Datatype* newtype)) {
    Call call("MPI_Type_create_subarray");
    return call.result(subarray(ndims, sizes, subsizes, starts, order, oldtype, newtype));
}

VIADUCT_MPI(Type_create_darray, (int size, int rank, int ndims, const int gsizes[], const int distribs[],
                                 const int dargs[], const int psizes[], int order, MPI_Datatype oldtype,
                                 MPI_Datatype* newtype)) {
    Call call("MPI_Type_create_darray");
    return call.result(darray(size, rank, ndims, gsizes, distribs, dargs, psizes, order, oldtype, newtype));
}

VIADUCT_MPI(Type_create_resized, (MPI_Datatype oldtype, MPI_Aint lb, MPI_Aint extent, MPI_Datatype* newtype)) {
    Call call("MPI_Type_create_resized");
    return call.result(resized(oldtype, lb, extent, newtype));
}

VIADUCT_MPI(Type_dup, (MPI_Datatype oldtype, MPI_Datatype* newtype)) {
    Call call("MPI_Type_dup");
    return call.result(duplicate(oldtype, newtype));
}
