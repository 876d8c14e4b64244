// SPDX-License-Identifier: BSD-2-Clause
// MPI functions on what a window carries: group, name, hints, attributes, error handler.
#include "mpi-adi/mpi/name.hpp"
#include "mpi-adi/mpi/window.hpp"

namespace viaduct::mpi {
namespace {

// Fortran's number for MPI_WIN_BASE and its like is the even one behind that of C.
constexpr int number_in_c(int keyval) { return (keyval - 1) | 1; }

bool is_builtin_keyval(int keyval) {
    return (keyval & ~0xf) == (MPI_WIN_BASE & ~0xf) && number_in_c(keyval) >= MPI_WIN_BASE &&
           number_in_c(keyval) <= MPI_WIN_MODEL;
}

// C gets the base itself and the addresses of the others, Fortran all as numbers.
void give_builtin(const rma::Window& window, int keyval, void* value, AttributeKind wanted) {
    const void* address = nullptr;
    intptr_t number = 0;
    switch (number_in_c(keyval)) {
        case MPI_WIN_BASE:
            address = window.base;
            number = reinterpret_cast<intptr_t>(window.base);
            break;
        case MPI_WIN_SIZE:
            address = &window.size;
            number = window.size;
            break;
        case MPI_WIN_DISP_UNIT:
            address = &window.disp_unit;
            number = window.disp_unit;
            break;
        case MPI_WIN_CREATE_FLAVOR:
            address = &window.flavor;
            number = window.flavor;
            break;
        default:
            address = &window.model;
            number = window.model;
            break;
    }
    if (wanted == AttributeKind::pointer)
        *static_cast<const void**>(value) = address;
    else
        *static_cast<intptr_t*>(value) = number;
}

int get_attribute(const rma::Window& window, int keyval, void* value, int* flag, AttributeKind wanted) {
    if (is_builtin_keyval(keyval)) {
        *flag = 1;
        give_builtin(window, keyval, value, wanted);
        return MPI_SUCCESS;
    }
    const Keyval* key = keyval_of(keyval, HandleType::win);
    if (key == nullptr) return MPI_ERR_KEYVAL;
    const AttributeSet::Value* found = window.attributes.find(key);
    *flag = found != nullptr ? 1 : 0;
    if (found != nullptr) deliver(*found, wanted, value);
    return MPI_SUCCESS;
}

int set_attribute(rma::Window& window, int keyval, void* value, AttributeKind kind) {
    Keyval* key = keyval_of(keyval, HandleType::win);
    if (key == nullptr) return MPI_ERR_KEYVAL;
    return window.attributes.set(window.handle, key, reinterpret_cast<intptr_t>(value), kind);
}

}  // namespace
}  // namespace viaduct::mpi

using namespace viaduct::mpi;

VIADUCT_MPI_WIN(Win_get_group, (MPI_Win win, MPI_Group* group), {
    if (group == nullptr) return MPI_ERR_ARG;
    group_retain(call->comm->local);
    *group = group_publish(call->comm->local);
    return MPI_SUCCESS;
})

VIADUCT_MPI_WIN(Win_set_name, (MPI_Win win, const char* win_name), {
    if (win_name == nullptr) return MPI_ERR_ARG;
    call->name = take_name(win_name);
    return MPI_SUCCESS;
})

VIADUCT_MPI_WIN(Win_get_name, (MPI_Win win, char* win_name, int* resultlen), {
    if (win_name == nullptr || resultlen == nullptr) return MPI_ERR_ARG;
    give_name(call->name, win_name, resultlen);
    return MPI_SUCCESS;
})

VIADUCT_MPI_WIN(Win_set_info, (MPI_Win win, MPI_Info info), {
    const Info* given = info_of(info);
    if (given == nullptr && info != MPI_INFO_NULL) return MPI_ERR_INFO;
    if (given != nullptr) rma::win_set_hints(*call, *given);
    return MPI_SUCCESS;
})

VIADUCT_MPI_WIN(Win_get_info, (MPI_Win win, MPI_Info* info_used), {
    if (info_used == nullptr) return MPI_ERR_ARG;
    Info* made = info_create();
    for (const auto& [key, value] : call->hints) made->set(key, value);
    made->set("cmpi_win_access", rma::access_ways(*call));
    made->set("cmpi_win_atomics", rma::atomic_ways(*call));
    *info_used = made->handle;
    return MPI_SUCCESS;
})

VIADUCT_MPI(Win_create_keyval, (MPI_Win_copy_attr_function * copy, MPI_Win_delete_attr_function* destroy,
                                int* keyval, void* extra_state)) {
    Call call("MPI_Win_create_keyval");
    VIADUCT_MPI_NEED(keyval)
    return call.result(keyval_create(HandleType::win, copy, destroy, extra_state, keyval));
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Win_free_keyval, (int* keyval)) {
    Call call("MPI_Win_free_keyval");
    VIADUCT_MPI_NEED(keyval)
    return call.result(keyval_free(keyval, HandleType::win));
} VIADUCT_MPI_CATCH()

// A key that is none of windows is not the window's error: the world's error handler is called, as MPICH does, and not
// that of the window, which by default ends the job.
VIADUCT_MPI(Win_set_attr, (MPI_Win win, int keyval, void* value)) {
    WindowCall call("MPI_Win_set_attr", win);
    if (!call.valid()) return call.result(MPI_ERR_WIN);
    const int error = set_attribute(*call, keyval, value, AttributeKind::pointer);
    return error == MPI_ERR_KEYVAL ? raise(static_cast<Comm*>(nullptr), error, "MPI_Win_set_attr") : call.result(error);
} VIADUCT_MPI_CATCH(win)
VIADUCT_MPI_WIN(Win_get_attr, (MPI_Win win, int keyval, void* value, int* flag),
                {
                    if (missing(value, static_cast<void*>(flag))) return MPI_ERR_ARG;
                    return get_attribute(*call, keyval, value, flag, AttributeKind::pointer);
                })

VIADUCT_MPI_WIN(Win_delete_attr, (MPI_Win win, int keyval), {
    const Keyval* key = keyval_of(keyval, HandleType::win);
    return key == nullptr ? MPI_ERR_KEYVAL : call->attributes.erase(win, key);
})

VIADUCT_MPI(Win_create_errhandler, (MPI_Win_errhandler_function * function, MPI_Errhandler* errhandler)) {
    Call call("MPI_Win_create_errhandler");
    if (function == nullptr || errhandler == nullptr) return call.result(MPI_ERR_ARG);
    // Handles of both kinds are ints, so one record keeps functions of either.
    *errhandler = errhandler_create(ErrhandlerKind::win, function);
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_WIN(Win_set_errhandler, (MPI_Win win, MPI_Errhandler errhandler), {
    Errhandler* found = errhandler_of(errhandler);
    if (found == nullptr || (found->function != nullptr && found->kind != ErrhandlerKind::win))
        return MPI_ERR_ARG;
    errhandler_retain(found);
    errhandler_release(call->errhandler);
    call->errhandler = found;
    return MPI_SUCCESS;
})

VIADUCT_MPI_WIN(Win_get_errhandler, (MPI_Win win, MPI_Errhandler* errhandler), {
    if (errhandler == nullptr) return MPI_ERR_ARG;
    errhandler_retain(call->errhandler);  // the program frees what it gets here
    *errhandler = call->errhandler->handle;
    return MPI_SUCCESS;
})

VIADUCT_MPI(Win_call_errhandler, (MPI_Win win, int errorcode)) {
    WindowCall call("MPI_Win_call_errhandler", win);
    if (!call.valid()) return call.result(MPI_ERR_WIN);
    (void)call.now(errorcode);  // the handler has run: the call has succeeded
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH(win)

extern "C" {

// Through these the Fortran layer sets and gets attributes as integers.
__attribute__((visibility("default"))) int MPII_Win_get_attr(MPI_Win win, int keyval, void* value, int* flag,
                                                             AttributeKind wanted) try {
    WindowCall call("MPI_Win_get_attr", win);
    return call.now(call.valid() ? get_attribute(*call, keyval, value, flag, wanted) : MPI_ERR_WIN);
} VIADUCT_MPI_CATCH_NOW(win)

__attribute__((visibility("default"))) int MPII_Win_set_attr(MPI_Win win, int keyval, void* value,
                                                             AttributeKind kind) try {
    WindowCall call("MPI_Win_set_attr", win);
    return call.now(call.valid() ? set_attribute(*call, keyval, value, kind) : MPI_ERR_WIN);
} VIADUCT_MPI_CATCH_NOW(win)

}  // extern "C"
