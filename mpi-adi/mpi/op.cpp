// SPDX-License-Identifier: BSD-2-Clause
// MPI functions on reduction operators.
#include "mpi-adi/engine/op.hpp"

#include "mpi-adi/mpi/call.hpp"

using namespace viaduct::mpi;

VIADUCT_MPI(Op_create, (MPI_User_function * function, int commute, MPI_Op* op)) {
    Call call("MPI_Op_create");
    VIADUCT_MPI_NEED(op)
    if (!function) {
        return call.result(MPI_ERR_ARG);
    }
    *op = op_create(function, commute != 0);
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Op_create_c, (MPI_User_function_c * function, int commute, MPI_Op* op)) {
    Call call("MPI_Op_create_c");
    VIADUCT_MPI_NEED(function, op)
    if (!function) {
        return call.result(MPI_ERR_ARG);
    }
    *op = op_create(function, commute != 0);
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Op_free, (MPI_Op * op)) {
    Call call("MPI_Op_free");
    VIADUCT_MPI_NEED(op)
    return call.result(op_free(op));
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Op_commutative, (MPI_Op op, int* commute)) {
    Call call("MPI_Op_commutative");
    VIADUCT_MPI_NEED(commute)
    Operator* found = op_of(op);
    if (!found) {
        return call.result(MPI_ERR_OP);
    }
    *commute = found->commutative;
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_COUNTED(Reduce_local, (const void* inbuf, void* inoutbuf, Count count, MPI_Datatype datatype, MPI_Op op), {
    Call call("MPI_Reduce_local");
    const Datatype* type = type_of(datatype);
    Operator* found = op_of(op);
    if (count < 0) {
        return call.result(MPI_ERR_COUNT);
    }
    if (!type || !type->committed) {
        return call.result(MPI_ERR_TYPE);
    }
    if (!found || op == MPI_REPLACE || op == MPI_NO_OP) {  // these are for windows
        return call.result(MPI_ERR_OP);
    }
    if (count > 0 && type->builtin && missing(inbuf, static_cast<const void*>(inoutbuf))) {
        return call.result(MPI_ERR_BUFFER);
    }
    if (int error = op_check(*found, *type)) {
        return call.result(error);
    }
    if (count > 0 && type->size > 0 && (inbuf == MPI_IN_PLACE || inoutbuf == MPI_IN_PLACE || inbuf == inoutbuf)) {
        return call.result(MPI_ERR_BUFFER);
    }
    op_apply(*found, inbuf, inoutbuf, count, *type);
    return MPI_SUCCESS;
})
