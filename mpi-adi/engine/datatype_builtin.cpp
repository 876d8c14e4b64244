// SPDX-License-Identifier: BSD-2-Clause
// The datatypes that are always there, and the table from handles to datatypes.
#include <array>
#include <cstddef>
#include <cstdint>

#include "core/process/never_destroyed.hpp"
#include "mpi-adi/engine/datatype.hpp"

namespace viaduct::mpi {
namespace {

using enum BasicClass;

struct Row {
    MPI_Datatype handle;
    const char* name;
    BasicClass basic;
    int alignment;
};

// Where a type may stand in a structure of C, which on some processors is more often than it may elsewhere.
template <typename T>
struct InStructure {
    char before;
    T value;
};
template <typename T>
constexpr int kAlignment = offsetof(InStructure<T>, value);

constexpr Row kBasics[] = {
    {MPI_CHAR, "MPI_CHAR", character, 1},
    {MPI_UNSIGNED_CHAR, "MPI_UNSIGNED_CHAR", unsigned_integer, 1},
    {MPI_SIGNED_CHAR, "MPI_SIGNED_CHAR", signed_integer, 1},
    {MPI_BYTE, "MPI_BYTE", byte, 1},
    {MPI_WCHAR, "MPI_WCHAR", character, 4},
    {MPI_SHORT, "MPI_SHORT", signed_integer, 2},
    {MPI_UNSIGNED_SHORT, "MPI_UNSIGNED_SHORT", unsigned_integer, 2},
    {MPI_INT, "MPI_INT", signed_integer, 4},
    {MPI_UNSIGNED, "MPI_UNSIGNED", unsigned_integer, 4},
    {MPI_LONG, "MPI_LONG", signed_integer, kAlignment<long>},
    {MPI_UNSIGNED_LONG, "MPI_UNSIGNED_LONG", unsigned_integer, kAlignment<unsigned long>},
    {MPIX_C_FLOAT16, "MPIX_C_FLOAT16", floating, 2},
    {MPI_FLOAT, "MPI_FLOAT", floating, 4},
    {MPI_DOUBLE, "MPI_DOUBLE", floating, kAlignment<double>},
    {MPI_LONG_DOUBLE, "MPI_LONG_DOUBLE", floating, kAlignment<long double>},
    {MPI_LONG_LONG_INT, "MPI_LONG_LONG_INT", signed_integer, kAlignment<long long>},
    {MPI_UNSIGNED_LONG_LONG, "MPI_UNSIGNED_LONG_LONG", unsigned_integer, kAlignment<long long>},
    {MPI_PACKED, "MPI_PACKED", byte, 1},
    {MPI_LB, "MPI_LB", marker_lb, 1},
    {MPI_UB, "MPI_UB", marker_ub, 1},
    {MPI_COMPLEX, "MPI_COMPLEX", complex, 4},
    {MPI_DOUBLE_COMPLEX, "MPI_DOUBLE_COMPLEX", complex, kAlignment<double>},
    {MPI_LOGICAL, "MPI_LOGICAL", logical, 4},
    {MPI_REAL, "MPI_REAL", floating, 4},
    {MPI_DOUBLE_PRECISION, "MPI_DOUBLE_PRECISION", floating, kAlignment<double>},
    {MPI_INTEGER, "MPI_INTEGER", signed_integer, 4},
    {MPI_CHARACTER, "MPI_CHARACTER", character, 1},
    {MPI_REAL4, "MPI_REAL4", floating, 4},
    {MPI_REAL8, "MPI_REAL8", floating, kAlignment<double>},
    {MPI_REAL16, "MPI_REAL16", floating, 16},
    {MPI_COMPLEX8, "MPI_COMPLEX8", complex, 4},
    {MPI_COMPLEX16, "MPI_COMPLEX16", complex, kAlignment<double>},
    {MPI_COMPLEX32, "MPI_COMPLEX32", complex, 16},
    {MPI_INTEGER1, "MPI_INTEGER1", signed_integer, 1},
    {MPI_INTEGER2, "MPI_INTEGER2", signed_integer, 2},
    {MPI_INTEGER4, "MPI_INTEGER4", signed_integer, 4},
    {MPI_INTEGER8, "MPI_INTEGER8", signed_integer, kAlignment<int64_t>},
    {MPI_INT8_T, "MPI_INT8_T", signed_integer, 1},
    {MPI_INT16_T, "MPI_INT16_T", signed_integer, 2},
    {MPI_INT32_T, "MPI_INT32_T", signed_integer, 4},
    {MPI_INT64_T, "MPI_INT64_T", signed_integer, kAlignment<int64_t>},
    {MPI_UINT8_T, "MPI_UINT8_T", unsigned_integer, 1},
    {MPI_UINT16_T, "MPI_UINT16_T", unsigned_integer, 2},
    {MPI_UINT32_T, "MPI_UINT32_T", unsigned_integer, 4},
    {MPI_UINT64_T, "MPI_UINT64_T", unsigned_integer, kAlignment<uint64_t>},
    {MPI_C_BOOL, "MPI_C_BOOL", logical, 1},
    {MPI_C_FLOAT_COMPLEX, "MPI_C_COMPLEX", complex, 4},
    {MPI_C_DOUBLE_COMPLEX, "MPI_C_DOUBLE_COMPLEX", complex, kAlignment<double>},
    {MPI_C_LONG_DOUBLE_COMPLEX, "MPI_C_LONG_DOUBLE_COMPLEX", complex, kAlignment<long double>},
    {MPI_AINT, "MPI_AINT", signed_integer, kAlignment<MPI_Aint>},
    {MPI_OFFSET, "MPI_OFFSET", signed_integer, kAlignment<MPI_Offset>},
    {MPI_COUNT, "MPI_COUNT", signed_integer, kAlignment<MPI_Count>},
    {MPI_CXX_BOOL, "MPI_CXX_BOOL", logical, 1},
    {MPI_CXX_FLOAT_COMPLEX, "MPI_CXX_FLOAT_COMPLEX", complex, 4},
    {MPI_CXX_DOUBLE_COMPLEX, "MPI_CXX_DOUBLE_COMPLEX", complex, kAlignment<double>},
    {MPI_CXX_LONG_DOUBLE_COMPLEX, "MPI_CXX_LONG_DOUBLE_COMPLEX", complex, kAlignment<long double>},
};

// A value and an index, as MPI_MINLOC takes them.
struct PairRow {
    MPI_Datatype handle;
    const char* name;
    MPI_Datatype first, second;
};

constexpr PairRow kPairs[] = {
    {MPI_FLOAT_INT, "MPI_FLOAT_INT", MPI_FLOAT, MPI_INT},
    {MPI_DOUBLE_INT, "MPI_DOUBLE_INT", MPI_DOUBLE, MPI_INT},
    {MPI_LONG_INT, "MPI_LONG_INT", MPI_LONG, MPI_INT},
    {MPI_SHORT_INT, "MPI_SHORT_INT", MPI_SHORT, MPI_INT},
    {MPI_LONG_DOUBLE_INT, "MPI_LONG_DOUBLE_INT", MPI_LONG_DOUBLE, MPI_INT},
    {MPI_2INT, "MPI_2INT", MPI_INT, MPI_INT},
    {MPI_2INTEGER, "MPI_2INTEGER", MPI_INTEGER, MPI_INTEGER},
    {MPI_2REAL, "MPI_2REAL", MPI_REAL, MPI_REAL},
    {MPI_2DOUBLE_PRECISION, "MPI_2DOUBLE_PRECISION", MPI_DOUBLE_PRECISION, MPI_DOUBLE_PRECISION},
};

constexpr std::array<BasicItem, 256> make_basic_items() {
    std::array<BasicItem, 256> items{};
    for (const Row& row : kBasics) {
        if (basic_handle_size(row.handle) > 0) {
            items[row.handle & 0xff] = {row.handle, row.basic};
        }
    }
    return items;
}

class Builtins {
  public:
    Builtins() {
        for (const Row& row : kBasics) {
            Datatype& type = basics_[row.handle & 0xff];
            common(type, row.handle, row.name);
            type.basic = row.basic;
            type.size = basic_handle_size(row.handle);
            type.elements = type.size > 0;
            type.ub = type.true_ub = type.size;
            type.alignment = row.alignment;
            type.contiguous = true;
            type.sticky_lb = row.basic == marker_lb;
            type.sticky_ub = row.basic == marker_ub;
            if (type.size) {
                type.runs = {{0, type.size, 1, 0, 0}};
            }
            type.seal();
        }
        for (const PairRow& row : kPairs) {
            make_pair(row);
        }
    }

    Datatype* find(MPI_Datatype handle) {
        Datatype* found = nullptr;
        if (is_basic_handle(handle)) {
            found = &basics_[handle & 0xff];
        } else if ((unsigned(handle) & 0xffffff00u) == 0x8c000000u) {
            found = &pairs_[handle & 7];
        }
        return found && found->handle == handle ? found : nullptr;
    }

  private:
    static void common(Datatype& type, MPI_Datatype handle, const char* name) {
        type.handle = handle;
        type.name = name;
        type.builtin = true;
        type.committed = true;
    }

    void make_pair(const PairRow& row) {
        Datatype* first = find(row.first);
        Datatype* second = find(row.second);
        MPI_Aint at = (first->size + second->alignment - 1) / second->alignment * second->alignment;
        Datatype* made = make_blocks({{0, 1, first}, {at, 1, second}}, true);
        Datatype& type = is_basic_handle(row.handle) ? basics_[row.handle & 0xff] : pairs_[row.handle & 7];
        common(type, row.handle, row.name);
        type.basic = pair;
        type.size = made->size;
        type.elements = 2;
        type.ub = made->ub;
        type.true_ub = made->true_ub;
        type.alignment = made->alignment;
        type.contiguous = made->contiguous;
        type.parts = made->parts;
        type.runs = made->runs;
        type.seal();
        made->parts.clear();  // the references have moved
        made->release();
    }

    std::array<Datatype, 256> basics_;
    std::array<Datatype, 8> pairs_;
};

Builtins& builtins() {
    static NeverDestroyed<Builtins> all;
    return *all;
}

// Programs keep types in arrays, free them and make them again in the same order, and some go on using the old handles.
// That works with MPICH, so it works here.
NeverDestroyed<ObjectTable<Datatype, HandleType::datatype, false>> derived;

}  // namespace

Datatype* mutable_type_of(MPI_Datatype handle) {
    Datatype* found = derived->find(handle);
    return found ? found : builtins().find(handle);
}

constinit const std::array<BasicItem, 256> basic_items = make_basic_items();

const Datatype* type_of(MPI_Datatype handle) { return mutable_type_of(handle); }

MPI_Datatype type_publish(Datatype* type, Datatype::Contents contents) {
    try {
        type->handle = derived->add(type);
    } catch (...) {
        type->release();
        throw;
    }
    // The inner types live as long as what was made of them, even when the program frees its handles first.
    for (MPI_Datatype inner : contents.types) {
        type_of(inner)->retain();
    }
    type->contents = std::move(contents);
    return type->handle;
}

int type_free(MPI_Datatype* handle) {
    Datatype* type = mutable_type_of(*handle);
    if (!type || type->builtin) {
        return MPI_ERR_TYPE;
    }
    if (int error = type->attributes.clear(*handle)) {
        return error;
    }
    *handle = MPI_DATATYPE_NULL;
    type->release();
    return MPI_SUCCESS;
}

void Datatype::release() const {
    if (!builtin && references_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        if (handle != MPI_DATATYPE_NULL) {
            derived->remove(handle);
        }
        delete this;
    }
}

Datatype::~Datatype() {
    if (builtin) {
        return;
    }
    for (const Part& part : parts) {
        part.type->release();
    }
    for (MPI_Datatype inner : contents.types) {
        type_of(inner)->release();
    }
}

}  // namespace viaduct::mpi
