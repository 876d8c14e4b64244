// SPDX-License-Identifier: BSD-2-Clause
// MPI functions that commit, free, name and ask datatypes.
#include <algorithm>
#include <climits>
#include <cmath>
#include <cstring>
#include <map>

#include "mpi-adi/engine/datatype.hpp"
#include "mpi-adi/mpi/call.hpp"
#include "mpi-adi/mpi/name.hpp"

namespace viaduct::mpi {
namespace {

int as_int(MPI_Count value) { return value > INT_MAX ? MPI_UNDEFINED : int(value); }

struct Shape {
    MPI_Count integers, addresses, large_counts, types;
};

// How many of each MPI_Type_get_contents gives.
Shape shape_of(const Datatype& type) {
    const Datatype::Contents& all = type.contents;
    return {MPI_Count(all.integers.size()), MPI_Count(all.addresses.size()), MPI_Count(all.large_counts.size()),
            MPI_Count(all.types.size())};
}

int give_contents(MPI_Datatype datatype, const Shape& room, int* integers, MPI_Aint* addresses, MPI_Count* large_counts,
                  MPI_Datatype* types) {
    const Datatype* type = type_of(datatype);
    if (!type || type->contents.combiner == MPI_COMBINER_NAMED) {
        return MPI_ERR_TYPE;
    }
    Shape shape = shape_of(*type);
    if (shape.integers > room.integers || shape.addresses > room.addresses || shape.large_counts > room.large_counts ||
        shape.types > room.types) {
        return MPI_ERR_ARG;
    }
    if ((shape.integers && !integers) || (shape.addresses && !addresses) || (shape.large_counts && !large_counts) ||
        (shape.types && !types)) {
        return MPI_ERR_ARG;
    }
    std::copy_n(type->contents.integers.begin(), shape.integers, integers);
    std::copy_n(type->contents.addresses.begin(), shape.addresses, addresses);
    std::copy_n(type->contents.large_counts.begin(), shape.large_counts, large_counts);
    for (size_t i = 0; i < type->contents.types.size(); ++i) {
        types[i] = type->contents.types[i];
        type_of(types[i])->retain();  // the program frees what it gets here
    }
    return MPI_SUCCESS;
}

// Types of MPI_Type_create_f90_*: one for each pair of arguments, never freed, told apart only by their contents.
int f90_type(int combiner, const std::vector<int>& arguments, MPI_Datatype basic, MPI_Datatype* newtype) {
    static auto* made = new std::map<std::pair<int, std::vector<int>>, MPI_Datatype>();
    auto& known = (*made)[{combiner, arguments}];
    if (known == 0) {
        Datatype* type = make_blocks({{0, 1, type_of(basic)}}, false);
        type->committed = true;
        known = type_publish(type, {combiner, arguments, {}, {}, {}});
    }
    *newtype = known;
    return MPI_SUCCESS;
}

// Which of the three kinds of REAL has so many digits and such a range; MPI_DATATYPE_NULL: none.
MPI_Datatype real_kind(int precision, int range, const MPI_Datatype kinds[3]) {
    constexpr int kDigits[] = {6, 15, 33};
    constexpr int kRange[] = {37, 307, 4931};
    for (int k = 0; k < 3; ++k) {
        if ((precision == MPI_UNDEFINED || precision <= kDigits[k]) && (range == MPI_UNDEFINED || range <= kRange[k])) {
            return kinds[k];
        }
    }
    return MPI_DATATYPE_NULL;
}

int f90_real(int combiner, int precision, int range, const MPI_Datatype kinds[3], MPI_Datatype* newtype) {
    MPI_Datatype basic = real_kind(precision, range, kinds);
    if ((precision == MPI_UNDEFINED && range == MPI_UNDEFINED) || basic == MPI_DATATYPE_NULL) {
        return MPI_ERR_ARG;
    }
    return f90_type(combiner, {precision, range}, basic, newtype);
}

}  // namespace
}  // namespace viaduct::mpi

using namespace viaduct::mpi;

VIADUCT_MPI(Type_commit, (MPI_Datatype * datatype)) {
    Call call("MPI_Type_commit");
    VIADUCT_MPI_NEED(datatype)
    const Datatype* type = type_of(*datatype);
    if (!type) {
        return call.result(MPI_ERR_TYPE);
    }
    type->committed = true;
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Type_free, (MPI_Datatype * datatype)) {
    Call call("MPI_Type_free");
    VIADUCT_MPI_NEED(datatype)
    const Datatype* type = type_of(*datatype);
    if (type && type->is_never_freed()) {
        return call.result(MPI_ERR_TYPE);
    }
    return call.result(type_free(datatype));
} VIADUCT_MPI_CATCH()

// Functions that ask one thing of a type: the body uses `type`.
#define VIADUCT_MPI_ASK_TYPE(function, parameters, ...)   \
    VIADUCT_MPI(function, parameters) {                   \
        Call call("MPI_" #function);                      \
        const Datatype* type = type_of(datatype);         \
        if (!type) {                                      \
            return call.result(MPI_ERR_TYPE);             \
        }                                                 \
        __VA_ARGS__;                                      \
        return MPI_SUCCESS;                               \
    } VIADUCT_MPI_CATCH()

VIADUCT_MPI_ASK_TYPE(Type_size, (MPI_Datatype datatype, int* size), {
    VIADUCT_MPI_NEED(size)
    *size = as_int(type->size);
})
VIADUCT_MPI_ASK_TYPE(Type_size_x, (MPI_Datatype datatype, MPI_Count* size), {
    VIADUCT_MPI_NEED(size)
    *size = type->size;
})
VIADUCT_MPI_ASK_TYPE(Type_get_extent, (MPI_Datatype datatype, MPI_Aint* lb, MPI_Aint* extent), {
    VIADUCT_MPI_NEED(lb, extent)
    *lb = type->lb;
    *extent = type->extent();
})
VIADUCT_MPI_ASK_TYPE(Type_get_extent_x, (MPI_Datatype datatype, MPI_Count* lb, MPI_Count* extent), {
    VIADUCT_MPI_NEED(lb, extent)
    *lb = type->lb;
    *extent = type->extent();
})
VIADUCT_MPI_ASK_TYPE(Type_get_true_extent, (MPI_Datatype datatype, MPI_Aint* lb, MPI_Aint* extent), {
    VIADUCT_MPI_NEED(lb, extent)
    *lb = type->true_lb;
    *extent = type->true_extent();
})
VIADUCT_MPI_ASK_TYPE(Type_get_true_extent_x, (MPI_Datatype datatype, MPI_Count* lb, MPI_Count* extent), {
    VIADUCT_MPI_NEED(lb, extent)
    *lb = type->true_lb;
    *extent = type->true_extent();
})
VIADUCT_MPI_ASK_TYPE(Type_extent, (MPI_Datatype datatype, MPI_Aint* extent), {
    VIADUCT_MPI_NEED(extent)
    *extent = type->extent();
})
VIADUCT_MPI_ASK_TYPE(Type_lb, (MPI_Datatype datatype, MPI_Aint* lb), {
    VIADUCT_MPI_NEED(lb)
    *lb = type->lb;
})
VIADUCT_MPI_ASK_TYPE(Type_ub, (MPI_Datatype datatype, MPI_Aint* ub), {
    VIADUCT_MPI_NEED(ub)
    *ub = type->ub;
})
VIADUCT_MPI_ASK_TYPE(Type_get_name, (MPI_Datatype datatype, char* name, int* length), {
    VIADUCT_MPI_NEED(name, length)
    give_name(type->name, name, length);
})
VIADUCT_MPI_ASK_TYPE(Type_size_c, (MPI_Datatype datatype, MPI_Count* size), {
    VIADUCT_MPI_NEED(size)
    *size = type->size;
})
VIADUCT_MPI_ASK_TYPE(Type_get_extent_c, (MPI_Datatype datatype, MPI_Count* lb, MPI_Count* extent), {
    VIADUCT_MPI_NEED(lb, extent)
    *lb = type->lb;
    *extent = type->extent();
})
VIADUCT_MPI_ASK_TYPE(Type_get_true_extent_c, (MPI_Datatype datatype, MPI_Count* lb, MPI_Count* extent), {
    VIADUCT_MPI_NEED(lb, extent)
    *lb = type->true_lb;
    *extent = type->true_extent();
})
VIADUCT_MPI_ASK_TYPE(Type_get_envelope,
                     (MPI_Datatype datatype, int* integers, int* addresses, int* types, int* combiner), {
                         VIADUCT_MPI_NEED(integers, addresses, types, combiner)
                         Shape shape = shape_of(*type);
                         // What was made with large counts is told by MPI_Type_get_envelope_c alone.
                         if (shape.large_counts) {
                             return call.result(MPI_ERR_TYPE);
                         }
                         *integers = int(shape.integers);
                         *addresses = int(shape.addresses);
                         *types = int(shape.types);
                         *combiner = type->contents.combiner;
                     })
VIADUCT_MPI_ASK_TYPE(Type_get_envelope_c,
                     (MPI_Datatype datatype, MPI_Count* integers, MPI_Count* addresses, MPI_Count* large_counts,
                      MPI_Count* types, int* combiner),
                     {
                         VIADUCT_MPI_NEED(integers, addresses, large_counts, types, combiner)
                         Shape shape = shape_of(*type);
                         *integers = shape.integers;
                         *addresses = shape.addresses;
                         *large_counts = shape.large_counts;
                         *types = shape.types;
                         *combiner = type->contents.combiner;
                     })

VIADUCT_MPI(Type_set_name, (MPI_Datatype datatype, const char* name)) {
    Call call("MPI_Type_set_name");
    VIADUCT_MPI_NEED(name)
    Datatype* type = mutable_type_of(datatype);
    if (!type) {
        return call.result(MPI_ERR_TYPE);
    }
    type->name = take_name(name);
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Type_get_contents, (MPI_Datatype datatype, int max_integers, int max_addresses, int max_types,
                                int integers[], MPI_Aint addresses[], MPI_Datatype types[])) {
    Call call("MPI_Type_get_contents");
    return call.result(
        give_contents(datatype, {max_integers, max_addresses, 0, max_types}, integers, addresses, nullptr, types));
}
VIADUCT_MPI_CATCH()

VIADUCT_MPI(Type_get_contents_c, (MPI_Datatype datatype, MPI_Count max_integers, MPI_Count max_addresses,
                                  MPI_Count max_large_counts, MPI_Count max_types, int integers[], MPI_Aint addresses[],
                                  MPI_Count large_counts[], MPI_Datatype types[])) {
    Call call("MPI_Type_get_contents_c");
    return call.result(give_contents(datatype, {max_integers, max_addresses, max_large_counts, max_types}, integers,
                                     addresses, large_counts, types));
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Type_match_size, (int typeclass, int size, MPI_Datatype* datatype)) {
    Call call("MPI_Type_match_size");
    VIADUCT_MPI_NEED(datatype)
    constexpr MPI_Datatype kReals[] = {MPI_REAL4, MPI_REAL8, MPI_REAL16};
    constexpr MPI_Datatype kIntegers[] = {MPI_INTEGER1, MPI_INTEGER2, MPI_INTEGER4, MPI_INTEGER8};
    constexpr MPI_Datatype kComplex[] = {MPI_COMPLEX8, MPI_COMPLEX16, MPI_COMPLEX32};
    auto choose = [&](auto& kinds) {
        for (MPI_Datatype kind : kinds) {
            if (basic_handle_size(kind) == size) {
                *datatype = kind;
                return MPI_SUCCESS;
            }
        }
        return MPI_ERR_ARG;
    };
    switch (typeclass) {
        case MPI_TYPECLASS_REAL: return call.result(choose(kReals));
        case MPI_TYPECLASS_INTEGER: return call.result(choose(kIntegers));
        case MPI_TYPECLASS_COMPLEX: return call.result(choose(kComplex));
        default: return call.result(MPI_ERR_ARG);
    }
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Type_create_f90_real, (int precision, int range, MPI_Datatype* newtype)) {
    Call call("MPI_Type_create_f90_real");
    VIADUCT_MPI_NEED(newtype)
    constexpr MPI_Datatype kKinds[] = {MPI_REAL, MPI_DOUBLE_PRECISION, MPI_REAL16};
    return call.result(f90_real(MPI_COMBINER_F90_REAL, precision, range, kKinds, newtype));
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Type_create_f90_complex, (int precision, int range, MPI_Datatype* newtype)) {
    Call call("MPI_Type_create_f90_complex");
    VIADUCT_MPI_NEED(newtype)
    constexpr MPI_Datatype kKinds[] = {MPI_COMPLEX, MPI_DOUBLE_COMPLEX, MPI_COMPLEX32};
    return call.result(f90_real(MPI_COMBINER_F90_COMPLEX, precision, range, kKinds, newtype));
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Type_create_f90_integer, (int range, MPI_Datatype* newtype)) {
    Call call("MPI_Type_create_f90_integer");
    VIADUCT_MPI_NEED(newtype)
    constexpr int kRange[] = {2, 4, 9, 18};
    constexpr MPI_Datatype kKinds[] = {MPI_INTEGER1, MPI_INTEGER2, MPI_INTEGER, MPI_INTEGER8};
    for (int k = 0; k < 4; ++k) {
        if (range <= kRange[k]) {
            return call.result(f90_type(MPI_COMBINER_F90_INTEGER, {range}, kKinds[k], newtype));
        }
    }
    return call.result(MPI_ERR_ARG);
} VIADUCT_MPI_CATCH()
