// SPDX-License-Identifier: BSD-2-Clause
// MPI functions on attributes, under their names of MPI 1 and 2, and the entries through which the Fortran layer sets
// and gets attributes as integers.
#include "mpi-adi/engine/attribute.hpp"

#include "mpi-adi/engine/datatype.hpp"
#include "mpi-adi/mpi/call.hpp"

namespace viaduct::mpi {
namespace {

constexpr int kBuiltin = 0x64400000;  // MPI_TAG_UB and its like

// Fortran's number for one of these is the even one behind that of C.
constexpr int number_in_c(int keyval) { return (keyval - 1) | 1; }

// The attributes that MPI_COMM_WORLD has from the start. C gets the address of a value, Fortran the value.
const int* builtin_value(int keyval) {
    static int tag_ub, host, io, wtime_is_global, universe_size, appnum;
    switch (number_in_c(keyval)) {
        case MPI_TAG_UB: tag_ub = kMaxTag; return &tag_ub;
        case MPI_HOST: host = MPI_PROC_NULL; return &host;
        case MPI_IO: io = MPI_ANY_SOURCE; return &io;
        case MPI_WTIME_IS_GLOBAL: wtime_is_global = 0; return &wtime_is_global;
        case MPI_LASTUSEDCODE: return last_used_code();
        case MPI_UNIVERSE_SIZE:
            universe_size = world().universe_size;
            return universe_size > 0 ? &universe_size : nullptr;
        case MPI_APPNUM: appnum = world().appnum; return appnum >= 0 ? &appnum : nullptr;
        default: return nullptr;
    }
}

bool is_builtin_keyval(int keyval) {
    return (keyval & ~0xf) == kBuiltin && number_in_c(keyval) >= MPI_TAG_UB &&
           number_in_c(keyval) <= MPI_APPNUM;
}

int comm_get(MPI_Comm handle, int keyval, void* value, int* flag, AttributeKind wanted) {
    Communicator* comm = comm_of(handle);
    if (!comm) {
        return MPI_ERR_COMM;
    }
    if (is_builtin_keyval(keyval)) {
        const int* found = builtin_value(keyval);
        *flag = found != nullptr;
        if (found && wanted == AttributeKind::pointer) {
            *static_cast<const int**>(value) = found;
        } else if (found) {
            *static_cast<intptr_t*>(value) = *found;
        }
        return MPI_SUCCESS;
    }
    const Keyval* key = keyval_of(keyval, HandleType::comm);
    if (!key) {
        return MPI_ERR_KEYVAL;
    }
    const AttributeSet::Value* found = comm->attributes.find(key);
    *flag = found != nullptr;
    if (found) {
        deliver(*found, wanted, value);
    }
    return MPI_SUCCESS;
}

int comm_set(MPI_Comm handle, int keyval, void* value, AttributeKind kind) {
    Communicator* comm = comm_of(handle);
    Keyval* key = keyval_of(keyval, HandleType::comm);
    return !comm  ? MPI_ERR_COMM
           : !key ? MPI_ERR_KEYVAL
                  : comm->attributes.set(handle, key, reinterpret_cast<intptr_t>(value), kind);
}

int comm_erase(MPI_Comm handle, int keyval) {
    Communicator* comm = comm_of(handle);
    const Keyval* key = keyval_of(keyval, HandleType::comm);
    return !comm ? MPI_ERR_COMM : !key ? MPI_ERR_KEYVAL : comm->attributes.erase(handle, key);
}

int type_get(MPI_Datatype handle, int keyval, void* value, int* flag, AttributeKind wanted) {
    const Datatype* type = type_of(handle);
    const Keyval* key = keyval_of(keyval, HandleType::datatype);
    if (!type || !key) {
        return type ? MPI_ERR_KEYVAL : MPI_ERR_TYPE;
    }
    const AttributeSet::Value* found = type->attributes.find(key);
    *flag = found != nullptr;
    if (found) {
        deliver(*found, wanted, value);
    }
    return MPI_SUCCESS;
}

int type_set(MPI_Datatype handle, int keyval, void* value, AttributeKind kind) {
    Datatype* type = mutable_type_of(handle);
    Keyval* key = keyval_of(keyval, HandleType::datatype);
    return !type  ? MPI_ERR_TYPE
           : !key ? MPI_ERR_KEYVAL
                  : type->attributes.set(handle, key, reinterpret_cast<intptr_t>(value), kind);
}

int type_erase(MPI_Datatype handle, int keyval) {
    Datatype* type = mutable_type_of(handle);
    const Keyval* key = keyval_of(keyval, HandleType::datatype);
    return !type ? MPI_ERR_TYPE : !key ? MPI_ERR_KEYVAL : type->attributes.erase(handle, key);
}

}  // namespace
}  // namespace viaduct::mpi

using namespace viaduct::mpi;

VIADUCT_MPI(Comm_create_keyval, (MPI_Comm_copy_attr_function * copy, MPI_Comm_delete_attr_function* destroy,
                                 int* keyval, void* extra_state)) {
    Call call("MPI_Comm_create_keyval");
    VIADUCT_MPI_NEED(keyval)
    return call.result(keyval_create(HandleType::comm, copy, destroy, extra_state, keyval));
}
VIADUCT_MPI_CATCH()

VIADUCT_MPI(Comm_free_keyval, (int* keyval)) {
    Call call("MPI_Comm_free_keyval");
    VIADUCT_MPI_NEED(keyval)
    return call.result(keyval_free(keyval, HandleType::comm));
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Comm_set_attr, (MPI_Comm comm, int keyval, void* value)) {
    Call call("MPI_Comm_set_attr", comm_of(comm));
    return call.result(comm_set(comm, keyval, value, AttributeKind::pointer));
} VIADUCT_MPI_CATCH(comm)

VIADUCT_MPI(Comm_get_attr, (MPI_Comm comm, int keyval, void* value, int* flag)) {
    Call call("MPI_Comm_get_attr", comm_of(comm));
    VIADUCT_MPI_NEED(flag)
    return call.result(comm_get(comm, keyval, value, flag, AttributeKind::pointer));
} VIADUCT_MPI_CATCH(comm)

VIADUCT_MPI(Comm_delete_attr, (MPI_Comm comm, int keyval)) {
    Call call("MPI_Comm_delete_attr", comm_of(comm));
    return call.result(comm_erase(comm, keyval));
} VIADUCT_MPI_CATCH(comm)

VIADUCT_MPI(Keyval_create, (MPI_Copy_function * copy, MPI_Delete_function* destroy, int* keyval, void* extra_state)) {
    Call call("MPI_Keyval_create");
    VIADUCT_MPI_NEED(keyval)
    return call.result(keyval_create(HandleType::comm, copy, destroy, extra_state, keyval));
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Keyval_free, (int* keyval)) {
    Call call("MPI_Keyval_free");
    VIADUCT_MPI_NEED(keyval)
    return call.result(keyval_free(keyval, HandleType::comm));
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Attr_put, (MPI_Comm comm, int keyval, void* value)) {
    Call call("MPI_Attr_put", comm_of(comm));
    return call.result(comm_set(comm, keyval, value, AttributeKind::pointer));
} VIADUCT_MPI_CATCH(comm)

VIADUCT_MPI(Attr_get, (MPI_Comm comm, int keyval, void* value, int* flag)) {
    Call call("MPI_Attr_get", comm_of(comm));
    VIADUCT_MPI_NEED(flag)
    return call.result(comm_get(comm, keyval, value, flag, AttributeKind::pointer));
} VIADUCT_MPI_CATCH(comm)

VIADUCT_MPI(Attr_delete, (MPI_Comm comm, int keyval)) {
    Call call("MPI_Attr_delete", comm_of(comm));
    return call.result(comm_erase(comm, keyval));
} VIADUCT_MPI_CATCH(comm)

VIADUCT_MPI(Type_create_keyval, (MPI_Type_copy_attr_function * copy, MPI_Type_delete_attr_function* destroy,
                                 int* keyval, void* extra_state)) {
    Call call("MPI_Type_create_keyval");
    VIADUCT_MPI_NEED(keyval)
    return call.result(keyval_create(HandleType::datatype, copy, destroy, extra_state, keyval));
}
VIADUCT_MPI_CATCH()

VIADUCT_MPI(Type_free_keyval, (int* keyval)) {
    Call call("MPI_Type_free_keyval");
    VIADUCT_MPI_NEED(keyval)
    return call.result(keyval_free(keyval, HandleType::datatype));
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Type_set_attr, (MPI_Datatype datatype, int keyval, void* value)) {
    Call call("MPI_Type_set_attr");
    return call.result(type_set(datatype, keyval, value, AttributeKind::pointer));
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Type_get_attr, (MPI_Datatype datatype, int keyval, void* value, int* flag)) {
    Call call("MPI_Type_get_attr");
    VIADUCT_MPI_NEED(flag)
    return call.result(type_get(datatype, keyval, value, flag, AttributeKind::pointer));
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Type_delete_attr, (MPI_Datatype datatype, int keyval)) {
    Call call("MPI_Type_delete_attr");
    return call.result(type_erase(datatype, keyval));
} VIADUCT_MPI_CATCH()

extern "C" {

// The ABI's copy function that copies: what MPI_COMM_DUP_FN means.
int MPIR_Dup_fn(MPI_Comm, int, void*, void* in, void* out, int* flag) {
    *static_cast<void**>(out) = in;
    *flag = 1;
    return MPI_SUCCESS;
}

#define VIADUCT_MPI_LAYER __attribute__((visibility("default")))

VIADUCT_MPI_LAYER int MPII_Comm_get_attr(MPI_Comm comm, int keyval, void* value, int* flag, AttributeKind wanted) try {
    Call call("MPI_Comm_get_attr", comm_of(comm));
    return call.now(comm_get(comm, keyval, value, flag, wanted));
} VIADUCT_MPI_CATCH_NOW(comm)

VIADUCT_MPI_LAYER int MPII_Comm_set_attr(MPI_Comm comm, int keyval, void* value, AttributeKind kind) try {
    Call call("MPI_Comm_set_attr", comm_of(comm));
    return call.now(comm_set(comm, keyval, value, kind));
} VIADUCT_MPI_CATCH_NOW(comm)

VIADUCT_MPI_LAYER int MPII_Type_get_attr(MPI_Datatype type, int keyval, void* value, int* flag,
                                         AttributeKind wanted) try {
    Call call("MPI_Type_get_attr");
    return call.now(type_get(type, keyval, value, flag, wanted));
}
VIADUCT_MPI_CATCH_NOW()

VIADUCT_MPI_LAYER int MPII_Type_set_attr(MPI_Datatype type, int keyval, void* value, AttributeKind kind) try {
    Call call("MPI_Type_set_attr");
    return call.now(type_set(type, keyval, value, kind));
} VIADUCT_MPI_CATCH_NOW()

VIADUCT_MPI_LAYER void MPII_Keyval_set_proxy(int keyval, CopyProxy copy, DeleteProxy destroy) {
    Critical guard;
    for (HandleType object : {HandleType::comm, HandleType::datatype, HandleType::win}) {
        if (Keyval* key = keyval_of(keyval, object)) {
            key->copy_proxy = copy;
            key->destroy_proxy = destroy;
        }
    }
}

}  // extern "C"
