// SPDX-License-Identifier: BSD-2-Clause
// Operators by handle, and their application to items of any datatype. The loops are in op_loops.cpp.
#include "mpi-adi/engine/op.hpp"

#include <algorithm>
#include <array>
#include <climits>

#include "core/process/never_destroyed.hpp"
#include "mpi-adi/engine/handle.hpp"

namespace viaduct::mpi {
namespace {

NeverDestroyed<ObjectTable<Operator, HandleType::op>> operators;

constexpr int kFirstBuiltin = MPI_MAX & 0xff;
constexpr int kLastBuiltin = MPI_NO_OP & 0xff;

Operator* builtin(MPI_Op handle) {
    static auto* all = [] {
        auto* made = new std::array<Operator, kLastBuiltin + 1>();
        for (int i = kFirstBuiltin; i <= kLastBuiltin; ++i) {
            (*made)[i].handle = (MPI_MAX & ~0xff) | i;
            (*made)[i].commutative = (*made)[i].handle != MPI_REPLACE && (*made)[i].handle != MPI_NO_OP;
        }
        return made;
    }();
    int index = handle & 0xff;
    return index >= kFirstBuiltin && index <= kLastBuiltin && (*all)[index].handle == handle ? &(*all)[index] : nullptr;
}

// From MPI_MAX, whose handle is the first, on.
constexpr const char* kOperators[] = {"MPI_MAX",  "MPI_MIN", "MPI_SUM",  "MPI_PROD", "MPI_LAND",   "MPI_BAND",
                                      "MPI_LOR",  "MPI_BOR", "MPI_LXOR", "MPI_BXOR", "MPI_MINLOC", "MPI_MAXLOC",
                                      "MPI_REPLACE", "MPI_NO_OP"};

}  // namespace

const char* op_name(MPI_Op handle) {
    return handle >= MPI_MAX && handle <= MPI_NO_OP ? kOperators[handle - MPI_MAX] : nullptr;
}

Operator* op_of(MPI_Op handle) {
    Operator* found = builtin(handle);
    return found ? found : operators->find(handle);
}

namespace {

MPI_Op publish(Operator* made) {
    return operators->keep(std::unique_ptr<Operator>(made))->handle;
}

}  // namespace

MPI_Op op_create(MPI_User_function* function, bool commutative) {
    return publish(new Operator{MPI_OP_NULL, function, nullptr, commutative, 1, nullptr});
}

MPI_Op op_create(MPI_User_function_c* function, bool commutative) {
    return publish(new Operator{MPI_OP_NULL, nullptr, function, commutative, 1, nullptr});
}

void op_retain(Operator* op) { op->references += !op->is_builtin(); }

void op_release(Operator* op) {
    if (!op->is_builtin() && --op->references == 0) {
        operators->remove(op->handle);
        delete op;
    }
}

int op_free(MPI_Op* handle) {
    Operator* op = operators->find(*handle);
    if (!op) {
        return MPI_ERR_OP;
    }
    op_release(op);
    *handle = MPI_OP_NULL;
    return MPI_SUCCESS;
}

int op_check(const Operator& op, const Datatype& type) {
    if (!op.is_builtin() || op_loop(op.handle, type)) {
        return MPI_SUCCESS;
    }
    return MPI_ERR_OP;
}

void op_apply(const Operator& op, const void* in, void* inout, MPI_Count count, const Datatype& type) {
    if (op.function_c) {
        MPI_Datatype handle = type.handle;
        op.function_c(const_cast<void*>(in), inout, &count, &handle);
        return;
    }
    if (!op.function) {
        op_loop(op.handle, type)(in, inout, size_t(count));
        return;
    }
    auto* from = static_cast<const char*>(in);
    auto* to = static_cast<char*>(inout);
    while (count > 0) {
        // The program's function takes its count as an int.
        int n = int(std::min<MPI_Count>(count, INT_MAX));
        MPI_Datatype handle = type.handle;
        if (op.proxy) {
            op.proxy(from, to, n, handle, op.function);
        } else {
            op.function(const_cast<char*>(from), to, &n, &handle);
        }
        from += n * type.extent();
        to += n * type.extent();
        count -= n;
    }
}

}  // namespace viaduct::mpi
