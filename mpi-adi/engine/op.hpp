// SPDX-License-Identifier: BSD-2-Clause
// Reduction operators: the built-in ones on every datatype they are defined for, and those of the program.
#pragma once

#include <mpi.h>

#include "mpi-adi/engine/datatype.hpp"

namespace viaduct::mpi {

using OperatorProxy = void (*)(const void* in, void* inout, int count, MPI_Datatype type, MPI_User_function* function);

struct Operator {
    MPI_Op handle = MPI_OP_NULL;
    // Of the program; both null in the built-in ones.
    MPI_User_function* function = nullptr;
    MPI_User_function_c* function_c = nullptr;
    bool commutative = true;
    int references = 1;
    OperatorProxy proxy = nullptr;  // how to call a function written in C++

    bool is_builtin() const { return function == nullptr && function_c == nullptr; }
};

Operator* op_of(MPI_Op handle);
// Of a built-in one; null for others.
const char* op_name(MPI_Op handle);
MPI_Op op_create(MPI_User_function* function, bool commutative);
MPI_Op op_create(MPI_User_function_c* function, bool commutative);
[[nodiscard]] int op_free(MPI_Op* handle);
void op_retain(Operator* op);
void op_release(Operator* op);

// MPI_SUCCESS, or MPI_ERR_OP when the operator is not defined for the datatype.
[[nodiscard]] int op_check(const Operator& op, const Datatype& type);

// inout[i] = in[i] op inout[i], the order that matters for operators that do not commute.
void op_apply(const Operator& op, const void* in, void* inout, MPI_Count count, const Datatype& type);

// The loop of a built-in operator for a basic or pair type, or null when there is none.
using OpLoop = void (*)(const void* in, void* inout, size_t count);
OpLoop op_loop(MPI_Op op, const Datatype& type);

}  // namespace viaduct::mpi
