// SPDX-License-Identifier: BSD-2-Clause
// MPI functions that make datatypes: check, make, store the arguments for MPI_Type_get_contents.
#include <algorithm>

#include "mpi-adi/engine/datatype.hpp"
#include "mpi-adi/mpi/call.hpp"

namespace viaduct::mpi {
namespace {

using Contents = Datatype::Contents;

template <typename T>
void append(std::vector<T>& to, const T* from, MPI_Count n) {
    to.insert(to.end(), from, from + n);
}

template <typename T>
bool any_negative(const T* values, MPI_Count n) {
    return std::any_of(values, values + n, [](T v) { return v < 0; });
}

// What a function with counts of 64 bits was given is told by MPI_Type_get_contents_c as large counts, whatever it
// counts; what is an int in both forms stays one.
void note(Contents& contents, std::initializer_list<int> values) {
    contents.integers.insert(contents.integers.end(), values);
}
void note(Contents& contents, std::initializer_list<MPI_Count> values) {
    contents.large_counts.insert(contents.large_counts.end(), values);
}
void note(Contents& contents, const int* values, MPI_Count n) { append(contents.integers, values, n); }
void note(Contents& contents, const MPI_Count* values, MPI_Count n) { append(contents.large_counts, values, n); }

// Displacements in bytes: addresses, unless the whole call is one of large counts.
template <typename Count>
void note_bytes(Contents& contents, const MPI_Aint* values, MPI_Count n) {
    append(std::is_same_v<Count, int> ? contents.addresses : contents.large_counts, values, n);
}

int finish(Datatype* made, Contents contents, MPI_Datatype* newtype) {
    *newtype = type_publish(made, std::move(contents));
    return MPI_SUCCESS;
}

int repeated(MPI_Count count, MPI_Count blocklength, MPI_Aint stride, bool in_items, MPI_Datatype oldtype,
             Contents contents, MPI_Datatype* newtype) {
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
int blocks(MPI_Count count, Length&& blocklength, Displacement&& displacement, bool in_items, MPI_Datatype oldtype,
           Contents contents, MPI_Datatype* newtype) {
    const Datatype* old = type_of(oldtype);
    if (!old) {
        return MPI_ERR_TYPE;
    }
    std::vector<Datatype::Part> parts;
    parts.reserve(size_t(count));
    for (MPI_Count i = 0; i < count; ++i) {
        if (blocklength(i) < 0) {
            return MPI_ERR_ARG;
        }
        MPI_Aint at = displacement(i);
        parts.push_back({in_items ? at * old->extent() : at, blocklength(i), old});
    }
    contents.types = {oldtype};
    return finish(make_blocks(std::move(parts), false), std::move(contents), newtype);
}

template <typename Count>
int hindexed(int combiner, Count count, const Count* lengths, const MPI_Aint* displacements, MPI_Datatype oldtype,
             MPI_Datatype* newtype) {
    if (count < 0) {
        return MPI_ERR_COUNT;
    }
    Contents contents{combiner, {}, {}, {}, {}};
    note(contents, {count});
    note(contents, lengths, count);
    note_bytes<Count>(contents, displacements, count);
    return blocks(
        count, [&](MPI_Count i) { return lengths[i]; }, [&](MPI_Count i) { return displacements[i]; }, false, oldtype,
        std::move(contents), newtype);
}

template <typename Count>
int structure(int combiner, Count count, const Count* lengths, const MPI_Aint* displacements, const MPI_Datatype* types,
              MPI_Datatype* newtype) {
    if (count < 0) {
        return MPI_ERR_COUNT;
    }
    if (any_negative(lengths, count)) {
        return MPI_ERR_ARG;
    }
    std::vector<Datatype::Part> parts;
    for (MPI_Count i = 0; i < count; ++i) {
        const Datatype* member = type_of(types[i]);
        if (!member) {
            return MPI_ERR_TYPE;
        }
        parts.push_back({displacements[i], lengths[i], member});
    }
    Contents contents{combiner, {}, {}, {}, {}};
    note(contents, {count});
    note(contents, lengths, count);
    note_bytes<Count>(contents, displacements, count);
    append(contents.types, types, count);
    return finish(make_blocks(std::move(parts), true), std::move(contents), newtype);
}

template <typename Count>
int subarray(int n, const Count* sizes, const Count* subsizes, const Count* starts, int order, MPI_Datatype oldtype,
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
    Contents contents{MPI_COMBINER_SUBARRAY, {n}, {}, {oldtype}, {}};
    note(contents, sizes, n);
    note(contents, subsizes, n);
    note(contents, starts, n);
    note(contents, {order});
    return finish(
        make_subarray(std::vector<MPI_Count>(sizes, sizes + n), std::vector<MPI_Count>(subsizes, subsizes + n),
                      std::vector<MPI_Count>(starts, starts + n), order, *old),
        std::move(contents), newtype);
}

template <typename Count>
bool darray_arguments_hold(int size, int rank, int n, const Count* gsizes, const int* distributions,
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
int darray(int size, int rank, int n, const Count* gsizes, const int* distributions, const int* arguments,
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
    return finish(made, std::move(contents), newtype);
}

template <typename Count>
int resized(MPI_Datatype oldtype, MPI_Aint lb, MPI_Aint extent, MPI_Datatype* newtype) {
    const Datatype* old = type_of(oldtype);
    if (!old) {
        return MPI_ERR_TYPE;
    }
    Contents contents{MPI_COMBINER_RESIZED, {}, {}, {oldtype}, {}};
    const MPI_Aint bounds[] = {lb, extent};
    note_bytes<Count>(contents, bounds, 2);
    return finish(make_resized(*old, lb, extent), std::move(contents), newtype);
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
    type_publish(made, {MPI_COMBINER_DUP, {}, {}, {oldtype}, {}});
    if (int error = old->attributes.copy_to(oldtype, made->attributes)) {
        MPI_Datatype half_made = made->handle;
        (void)type_free(&half_made);  // the error that came first is told
        *newtype = MPI_DATATYPE_NULL;
        return error;
    }
    *newtype = made->handle;
    return MPI_SUCCESS;
}

template <typename Count>
Contents vector_contents(int combiner, std::initializer_list<Count> values) {
    Contents contents{combiner, {}, {}, {}, {}};
    note(contents, values);
    return contents;
}

template <typename Count>
int hvector(Count count, Count blocklength, MPI_Aint stride, MPI_Datatype oldtype, MPI_Datatype* newtype) {
    Contents contents = vector_contents(MPI_COMBINER_HVECTOR, {count, blocklength});
    note_bytes<Count>(contents, &stride, 1);
    return repeated(count, blocklength, stride, false, oldtype, std::move(contents), newtype);
}

// Blocks of one length, or of lengths of their own (`lengths` not null), at displacements in items.
template <typename Count>
int indexed(int combiner, Count count, Count blocklength, const Count* lengths, const Count* displacements,
            MPI_Datatype oldtype, MPI_Datatype* newtype) {
    if (count < 0) {
        return MPI_ERR_COUNT;
    }
    Contents contents = vector_contents(combiner, {count});
    if (lengths) {
        note(contents, lengths, count);
    } else {
        note(contents, {blocklength});
    }
    note(contents, displacements, count);
    return blocks(count, [&](MPI_Count i) { return lengths ? lengths[i] : blocklength; },
                  [&](MPI_Count i) { return MPI_Aint(displacements[i]); }, true, oldtype, std::move(contents), newtype);
}

template <typename Count>
int hindexed_block(Count count, Count blocklength, const MPI_Aint* displacements, MPI_Datatype oldtype,
                   MPI_Datatype* newtype) {
    if (count < 0) {
        return MPI_ERR_COUNT;
    }
    Contents contents = vector_contents(MPI_COMBINER_HINDEXED_BLOCK, {count, blocklength});
    note_bytes<Count>(contents, displacements, count);
    return blocks(count, [&](MPI_Count) { return blocklength; }, [&](MPI_Count i) { return displacements[i]; }, false,
                  oldtype, std::move(contents), newtype);
}

}  // namespace
}  // namespace viaduct::mpi

using namespace viaduct::mpi;

// In the functions for large counts displacements in bytes are MPI_Count, which is MPI_Aint by another name.
static_assert(std::is_same_v<MPI_Count, MPI_Aint>);

VIADUCT_MPI_COUNTED(Type_contiguous, (Count count, MPI_Datatype oldtype, MPI_Datatype* newtype), {
    Call call("MPI_Type_contiguous");
    VIADUCT_MPI_NEED(newtype)
    if (count < 0) {
        return call.result(MPI_ERR_COUNT);
    }
    return call.result(
        repeated(1, count, 0, true, oldtype, vector_contents(MPI_COMBINER_CONTIGUOUS, {count}), newtype));
})

VIADUCT_MPI_COUNTED(Type_vector,
                    (Count count, Count blocklength, Count stride, MPI_Datatype oldtype, MPI_Datatype* newtype), {
                        Call call("MPI_Type_vector");
                        VIADUCT_MPI_NEED(newtype)
                        return call.result(repeated(count, blocklength, stride, true, oldtype,
                                                    vector_contents(MPI_COMBINER_VECTOR, {count, blocklength, stride}),
                                                    newtype));
                    })

VIADUCT_MPI_COUNTED(Type_create_hvector,
                    (Count count, Count blocklength, MPI_Aint stride, MPI_Datatype oldtype, MPI_Datatype* newtype), {
    Call call("MPI_Type_create_hvector");
    VIADUCT_MPI_NEED(newtype)
    return call.result(hvector(count, blocklength, stride, oldtype, newtype));
})

VIADUCT_MPI(Type_hvector, (int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype, MPI_Datatype* newtype)) {
    Call call("MPI_Type_hvector");
    VIADUCT_MPI_NEED(newtype)
    return call.result(hvector(count, blocklength, stride, oldtype, newtype));
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_COUNTED(
    Type_indexed,
    (Count count, const Count lengths[], const Count displacements[], MPI_Datatype oldtype, MPI_Datatype* newtype), {
        Call call("MPI_Type_indexed");
        VIADUCT_MPI_NEED(newtype)
        if (count > 0) {
            VIADUCT_MPI_NEED(lengths, displacements)
        }
        return call.result(indexed<Count>(MPI_COMBINER_INDEXED, count, 0, lengths, displacements, oldtype, newtype));
    })

VIADUCT_MPI_COUNTED(Type_create_hindexed, (Count count, const Count lengths[], const MPI_Aint displacements[],
                                           MPI_Datatype oldtype, MPI_Datatype* newtype), {
    Call call("MPI_Type_create_hindexed");
    VIADUCT_MPI_NEED(newtype)
    if (count > 0) {
        VIADUCT_MPI_NEED(lengths, displacements)
    }
    return call.result(hindexed(MPI_COMBINER_HINDEXED, count, lengths, displacements, oldtype, newtype));
})

VIADUCT_MPI(Type_hindexed, (int count, int lengths[], MPI_Aint displacements[], MPI_Datatype oldtype,
                            MPI_Datatype* newtype)) {
    Call call("MPI_Type_hindexed");
    VIADUCT_MPI_NEED(newtype)
    if (count > 0) {
        VIADUCT_MPI_NEED(lengths, displacements)
    }
    return call.result(hindexed<int>(MPI_COMBINER_HINDEXED, count, lengths, displacements, oldtype, newtype));
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_COUNTED(Type_create_indexed_block, (Count count, Count blocklength, const Count displacements[],
                                                MPI_Datatype oldtype, MPI_Datatype* newtype), {
    Call call("MPI_Type_create_indexed_block");
    VIADUCT_MPI_NEED(newtype)
    if (count > 0) {
        VIADUCT_MPI_NEED(displacements)
    }
    return call.result(
        indexed<Count>(MPI_COMBINER_INDEXED_BLOCK, count, blocklength, nullptr, displacements, oldtype, newtype));
})

VIADUCT_MPI_COUNTED(Type_create_hindexed_block, (Count count, Count blocklength, const MPI_Aint displacements[],
                                                 MPI_Datatype oldtype, MPI_Datatype* newtype), {
    Call call("MPI_Type_create_hindexed_block");
    VIADUCT_MPI_NEED(newtype)
    if (count > 0) {
        VIADUCT_MPI_NEED(displacements)
    }
    return call.result(hindexed_block(count, blocklength, displacements, oldtype, newtype));
})

VIADUCT_MPI_COUNTED(Type_create_struct, (Count count, const Count lengths[], const MPI_Aint displacements[],
                                         const MPI_Datatype types[], MPI_Datatype* newtype), {
    Call call("MPI_Type_create_struct");
    VIADUCT_MPI_NEED(newtype)
    if (count > 0) {
        VIADUCT_MPI_NEED(lengths, displacements, types)
    }
    return call.result(structure(MPI_COMBINER_STRUCT, count, lengths, displacements, types, newtype));
})

VIADUCT_MPI(Type_struct, (int count, int lengths[], MPI_Aint displacements[], MPI_Datatype types[],
                          MPI_Datatype* newtype)) {
    Call call("MPI_Type_struct");
    VIADUCT_MPI_NEED(newtype)
    if (count > 0) {
        VIADUCT_MPI_NEED(lengths, displacements, types)
    }
    return call.result(structure<int>(MPI_COMBINER_STRUCT, count, lengths, displacements, types, newtype));
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_COUNTED(Type_create_subarray, (int ndims, const Count sizes[], const Count subsizes[], const Count starts[],
                                           int order, MPI_Datatype oldtype, MPI_Datatype* newtype), {
    Call call("MPI_Type_create_subarray");
    VIADUCT_MPI_NEED(newtype, sizes, subsizes, starts)
    return call.result(subarray(ndims, sizes, subsizes, starts, order, oldtype, newtype));
})

VIADUCT_MPI_COUNTED(Type_create_darray, (int size, int rank, int ndims, const Count gsizes[], const int distribs[],
                                         const int dargs[], const int psizes[], int order, MPI_Datatype oldtype,
                                         MPI_Datatype* newtype), {
    Call call("MPI_Type_create_darray");
    VIADUCT_MPI_NEED(newtype, gsizes, distribs, dargs, psizes)
    return call.result(darray(size, rank, ndims, gsizes, distribs, dargs, psizes, order, oldtype, newtype));
})

VIADUCT_MPI_COUNTED(Type_create_resized, (MPI_Datatype oldtype, MPI_Aint lb, MPI_Aint extent, MPI_Datatype* newtype), {
    Call call("MPI_Type_create_resized");
    VIADUCT_MPI_NEED(newtype)
    return call.result(resized<Count>(oldtype, lb, extent, newtype));
})

VIADUCT_MPI(Type_dup, (MPI_Datatype oldtype, MPI_Datatype* newtype)) {
    Call call("MPI_Type_dup");
    VIADUCT_MPI_NEED(newtype)
    return call.result(duplicate(oldtype, newtype));
} VIADUCT_MPI_CATCH()
