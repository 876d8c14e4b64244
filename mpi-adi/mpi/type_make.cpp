// SPDX-License-Identifier: BSD-2-Clause
// MPI functions that make datatypes out of blocks of other types. Each checks its arguments, makes the type, and keeps
// the arguments for MPI_Type_get_contents. Those for parts of arrays are in type_array.cpp.
#include <algorithm>

#include "mpi-adi/engine/datatype.hpp"
#include "mpi-adi/mpi/call.hpp"
#include "mpi-adi/mpi/type_contents.hpp"

namespace viaduct::mpi {
namespace {

template <typename T>
bool any_negative(const T* values, MPI_Count n) {
    return std::any_of(values, values + n, [](T v) { return v < 0; });
}

int create_repeated(MPI_Count count, MPI_Count blocklength, MPI_Aint stride, bool in_items, MPI_Datatype oldtype,
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
    return publish_with(make_repeated(count, blocklength, in_items ? stride * old->extent() : stride, *old),
                        std::move(contents), newtype);
}

// Blocks of one type. `blocklength(i)` and `displacement(i)` give those of block i, the latter in items or bytes.
template <typename Length, typename Displacement>
int create_blocks(MPI_Count count, Length&& blocklength, Displacement&& displacement, bool in_items,
                  MPI_Datatype oldtype, Contents contents, MPI_Datatype* newtype) {
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
    return publish_with(make_blocks(std::move(parts), false), std::move(contents), newtype);
}

template <typename Count>
int create_hindexed(int combiner, Count count, const Count* lengths, const MPI_Aint* displacements,
                    MPI_Datatype oldtype, MPI_Datatype* newtype) {
    if (count < 0) {
        return MPI_ERR_COUNT;
    }
    Contents contents{combiner, {}, {}, {}, {}};
    note(contents, {count});
    note(contents, lengths, count);
    note_bytes<Count>(contents, displacements, count);
    return create_blocks(
        count, [&](MPI_Count i) { return lengths[i]; }, [&](MPI_Count i) { return displacements[i]; }, false, oldtype,
        std::move(contents), newtype);
}

template <typename Count>
int create_struct(int combiner, Count count, const Count* lengths, const MPI_Aint* displacements,
                  const MPI_Datatype* types, MPI_Datatype* newtype) {
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
    return publish_with(make_blocks(std::move(parts), true), std::move(contents), newtype);
}

template <typename Count>
int create_resized(MPI_Datatype oldtype, MPI_Aint lb, MPI_Aint extent, MPI_Datatype* newtype) {
    const Datatype* old = type_of(oldtype);
    if (!old) {
        return MPI_ERR_TYPE;
    }
    Contents contents{MPI_COMBINER_RESIZED, {}, {}, {oldtype}, {}};
    const MPI_Aint bounds[] = {lb, extent};
    note_bytes<Count>(contents, bounds, 2);
    return publish_with(make_resized(*old, lb, extent), std::move(contents), newtype);
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
Contents contents_of(int combiner, std::initializer_list<Count> values) {
    Contents contents{combiner, {}, {}, {}, {}};
    note(contents, values);
    return contents;
}

template <typename Count>
int create_hvector(Count count, Count blocklength, MPI_Aint stride, MPI_Datatype oldtype, MPI_Datatype* newtype) {
    Contents contents = contents_of(MPI_COMBINER_HVECTOR, {count, blocklength});
    note_bytes<Count>(contents, &stride, 1);
    return create_repeated(count, blocklength, stride, false, oldtype, std::move(contents), newtype);
}

// Blocks of one length, or of lengths of their own (`lengths` not null), at displacements in items.
template <typename Count>
int create_indexed(int combiner, Count count, Count blocklength, const Count* lengths, const Count* displacements,
                   MPI_Datatype oldtype, MPI_Datatype* newtype) {
    if (count < 0) {
        return MPI_ERR_COUNT;
    }
    Contents contents = contents_of(combiner, {count});
    if (lengths) {
        note(contents, lengths, count);
    } else {
        note(contents, {blocklength});
    }
    note(contents, displacements, count);
    return create_blocks(
        count, [&](MPI_Count i) { return lengths ? lengths[i] : blocklength; },
        [&](MPI_Count i) { return MPI_Aint(displacements[i]); }, true, oldtype, std::move(contents), newtype);
}

template <typename Count>
int create_hindexed_block(Count count, Count blocklength, const MPI_Aint* displacements, MPI_Datatype oldtype,
                          MPI_Datatype* newtype) {
    if (count < 0) {
        return MPI_ERR_COUNT;
    }
    Contents contents = contents_of(MPI_COMBINER_HINDEXED_BLOCK, {count, blocklength});
    note_bytes<Count>(contents, displacements, count);
    return create_blocks(
        count, [&](MPI_Count) { return blocklength; }, [&](MPI_Count i) { return displacements[i]; }, false, oldtype,
        std::move(contents), newtype);
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
        create_repeated(1, count, 0, true, oldtype, contents_of(MPI_COMBINER_CONTIGUOUS, {count}), newtype));
})

VIADUCT_MPI_COUNTED(Type_vector,
                    (Count count, Count blocklength, Count stride, MPI_Datatype oldtype, MPI_Datatype* newtype), {
                        Call call("MPI_Type_vector");
                        VIADUCT_MPI_NEED(newtype)
                        return call.result(
                            create_repeated(count, blocklength, stride, true, oldtype,
                                            contents_of(MPI_COMBINER_VECTOR, {count, blocklength, stride}), newtype));
                    })

VIADUCT_MPI_COUNTED(Type_create_hvector,
                    (Count count, Count blocklength, MPI_Aint stride, MPI_Datatype oldtype, MPI_Datatype* newtype), {
    Call call("MPI_Type_create_hvector");
    VIADUCT_MPI_NEED(newtype)
    return call.result(create_hvector(count, blocklength, stride, oldtype, newtype));
})

VIADUCT_MPI(Type_hvector, (int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype, MPI_Datatype* newtype)) {
    Call call("MPI_Type_hvector");
    VIADUCT_MPI_NEED(newtype)
    return call.result(create_hvector(count, blocklength, stride, oldtype, newtype));
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_COUNTED(
    Type_indexed,
    (Count count, const Count lengths[], const Count displacements[], MPI_Datatype oldtype, MPI_Datatype* newtype), {
        Call call("MPI_Type_indexed");
        VIADUCT_MPI_NEED(newtype)
        if (count > 0) {
            VIADUCT_MPI_NEED(lengths, displacements)
        }
        return call.result(
            create_indexed<Count>(MPI_COMBINER_INDEXED, count, 0, lengths, displacements, oldtype, newtype));
    })

VIADUCT_MPI_COUNTED(Type_create_hindexed, (Count count, const Count lengths[], const MPI_Aint displacements[],
                                           MPI_Datatype oldtype, MPI_Datatype* newtype), {
    Call call("MPI_Type_create_hindexed");
    VIADUCT_MPI_NEED(newtype)
    if (count > 0) {
        VIADUCT_MPI_NEED(lengths, displacements)
    }
    return call.result(create_hindexed(MPI_COMBINER_HINDEXED, count, lengths, displacements, oldtype, newtype));
})

VIADUCT_MPI(Type_hindexed, (int count, int lengths[], MPI_Aint displacements[], MPI_Datatype oldtype,
                            MPI_Datatype* newtype)) {
    Call call("MPI_Type_hindexed");
    VIADUCT_MPI_NEED(newtype)
    if (count > 0) {
        VIADUCT_MPI_NEED(lengths, displacements)
    }
    return call.result(create_hindexed<int>(MPI_COMBINER_HINDEXED, count, lengths, displacements, oldtype, newtype));
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_COUNTED(Type_create_indexed_block, (Count count, Count blocklength, const Count displacements[],
                                                MPI_Datatype oldtype, MPI_Datatype* newtype), {
    Call call("MPI_Type_create_indexed_block");
    VIADUCT_MPI_NEED(newtype)
    if (count > 0) {
        VIADUCT_MPI_NEED(displacements)
    }
    return call.result(create_indexed<Count>(MPI_COMBINER_INDEXED_BLOCK, count, blocklength, nullptr, displacements,
                                             oldtype, newtype));
})

VIADUCT_MPI_COUNTED(Type_create_hindexed_block, (Count count, Count blocklength, const MPI_Aint displacements[],
                                                 MPI_Datatype oldtype, MPI_Datatype* newtype), {
    Call call("MPI_Type_create_hindexed_block");
    VIADUCT_MPI_NEED(newtype)
    if (count > 0) {
        VIADUCT_MPI_NEED(displacements)
    }
    return call.result(create_hindexed_block(count, blocklength, displacements, oldtype, newtype));
})

VIADUCT_MPI_COUNTED(Type_create_struct, (Count count, const Count lengths[], const MPI_Aint displacements[],
                                         const MPI_Datatype types[], MPI_Datatype* newtype), {
    Call call("MPI_Type_create_struct");
    VIADUCT_MPI_NEED(newtype)
    if (count > 0) {
        VIADUCT_MPI_NEED(lengths, displacements, types)
    }
    return call.result(create_struct(MPI_COMBINER_STRUCT, count, lengths, displacements, types, newtype));
})

VIADUCT_MPI(Type_struct, (int count, int lengths[], MPI_Aint displacements[], MPI_Datatype types[],
                          MPI_Datatype* newtype)) {
    Call call("MPI_Type_struct");
    VIADUCT_MPI_NEED(newtype)
    if (count > 0) {
        VIADUCT_MPI_NEED(lengths, displacements, types)
    }
    return call.result(create_struct<int>(MPI_COMBINER_STRUCT, count, lengths, displacements, types, newtype));
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_COUNTED(Type_create_resized, (MPI_Datatype oldtype, MPI_Aint lb, MPI_Aint extent, MPI_Datatype* newtype), {
    Call call("MPI_Type_create_resized");
    VIADUCT_MPI_NEED(newtype)
    return call.result(create_resized<Count>(oldtype, lb, extent, newtype));
})

VIADUCT_MPI(Type_dup, (MPI_Datatype oldtype, MPI_Datatype* newtype)) {
    Call call("MPI_Type_dup");
    VIADUCT_MPI_NEED(newtype)
    return call.result(duplicate(oldtype, newtype));
} VIADUCT_MPI_CATCH()
