// SPDX-License-Identifier: BSD-2-Clause
// MPI functions on error handlers, classes, codes and texts.
#include "mpi-adi/engine/error.hpp"

#include <cstring>

#include "mpi-adi/mpi/call.hpp"

namespace viaduct::mpi {
namespace {

int get_handler(MPI_Comm handle, MPI_Errhandler* errhandler) {
    Communicator* comm = comm_of(handle);
    if (!comm) {
        return MPI_ERR_COMM;
    }
    errhandler_retain(comm->errhandler);  // the program frees what it gets here
    *errhandler = comm->errhandler->handle;
    return MPI_SUCCESS;
}

int set_handler(MPI_Comm handle, MPI_Errhandler errhandler) {
    Communicator* comm = comm_of(handle);
    Errhandler* found = errhandler_of(errhandler);
    if (!comm) {
        return MPI_ERR_COMM;
    }
    if (!found || found->kind != ErrhandlerKind::comm) {
        return MPI_ERR_ARG;
    }
    errhandler_retain(found);
    errhandler_release(comm->errhandler);
    comm->errhandler = found;
    return MPI_SUCCESS;
}

int create_handler(MPI_Comm_errhandler_function* function, MPI_Errhandler* errhandler) {
    if (!function) {
        return MPI_ERR_ARG;
    }
    *errhandler = errhandler_create(ErrhandlerKind::comm, function);
    return MPI_SUCCESS;
}

}  // namespace
}  // namespace viaduct::mpi

using namespace viaduct::mpi;

VIADUCT_MPI(Comm_create_errhandler, (MPI_Comm_errhandler_function * function, MPI_Errhandler* errhandler)) {
    Call call("MPI_Comm_create_errhandler");
    VIADUCT_MPI_NEED(errhandler)
    return call.result(create_handler(function, errhandler));
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Errhandler_create, (MPI_Comm_errhandler_function * function, MPI_Errhandler* errhandler)) {
    Call call("MPI_Errhandler_create");
    VIADUCT_MPI_NEED(errhandler)
    return call.result(create_handler(function, errhandler));
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Comm_set_errhandler, (MPI_Comm comm, MPI_Errhandler errhandler)) {
    Call call("MPI_Comm_set_errhandler", comm_of(comm));
    return call.result(set_handler(comm, errhandler));
} VIADUCT_MPI_CATCH(comm)

VIADUCT_MPI(Errhandler_set, (MPI_Comm comm, MPI_Errhandler errhandler)) {
    Call call("MPI_Errhandler_set", comm_of(comm));
    return call.result(set_handler(comm, errhandler));
} VIADUCT_MPI_CATCH(comm)

VIADUCT_MPI(Comm_get_errhandler, (MPI_Comm comm, MPI_Errhandler* errhandler)) {
    Call call("MPI_Comm_get_errhandler", comm_of(comm));
    VIADUCT_MPI_NEED(errhandler)
    return call.result(get_handler(comm, errhandler));
} VIADUCT_MPI_CATCH(comm)

VIADUCT_MPI(Errhandler_get, (MPI_Comm comm, MPI_Errhandler* errhandler)) {
    Call call("MPI_Errhandler_get", comm_of(comm));
    VIADUCT_MPI_NEED(errhandler)
    return call.result(get_handler(comm, errhandler));
} VIADUCT_MPI_CATCH(comm)

VIADUCT_MPI(Comm_call_errhandler, (MPI_Comm comm, int errorcode)) {
    Call call("MPI_Comm_call_errhandler", comm_of(comm));
    if (!comm_of(comm)) {
        return call.result(MPI_ERR_COMM);
    }
    (void)call.now(errorcode);  // the handler has run: the call has succeeded
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH(comm)

VIADUCT_MPI(Errhandler_free, (MPI_Errhandler * errhandler)) {
    AnyTimeCall call("MPI_Errhandler_free");
    VIADUCT_MPI_NEED(errhandler)
    Errhandler* found = errhandler_of(*errhandler);
    if (!found) {
        return call.result(MPI_ERR_ARG);
    }
    errhandler_release(found);
    *errhandler = MPI_ERRHANDLER_NULL;
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Error_class, (int errorcode, int* errorclass)) {
    AnyTimeCall call("MPI_Error_class");
    VIADUCT_MPI_NEED(errorclass)
    int found = error_class_of(errorcode);
    *errorclass = found < 0 ? MPI_ERR_UNKNOWN : found;
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Error_string, (int errorcode, char* string, int* resultlen)) {
    AnyTimeCall call("MPI_Error_string");
    VIADUCT_MPI_NEED(string, resultlen)
    std::string text = error_text(errorcode);
    text.resize(std::min<size_t>(text.size(), MPI_MAX_ERROR_STRING - 1));
    std::memcpy(string, text.c_str(), text.size() + 1);
    *resultlen = int(text.size());
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Add_error_class, (int* errorclass)) {
    AnyTimeCall call("MPI_Add_error_class");
    VIADUCT_MPI_NEED(errorclass)
    *errorclass = add_error_class();
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Add_error_code, (int errorclass, int* errorcode)) {
    AnyTimeCall call("MPI_Add_error_code");
    VIADUCT_MPI_NEED(errorcode)
    int made = add_error_code(errorclass);
    if (made < 0) {
        return call.result(MPI_ERR_ARG);
    }
    *errorcode = made;
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Add_error_string, (int errorcode, const char* string)) {
    AnyTimeCall call("MPI_Add_error_string");
    VIADUCT_MPI_NEED(string)
    bool fits = strnlen(string, MPI_MAX_ERROR_STRING) < MPI_MAX_ERROR_STRING;
    return call.result(fits && set_error_text(errorcode, string) ? MPI_SUCCESS : MPI_ERR_ARG);
} VIADUCT_MPI_CATCH()

VIADUCT_MPIX(Delete_error_class, (int errorclass)) {
    AnyTimeCall call("MPIX_Delete_error_class");
    return call.result(delete_error_class(errorclass) ? MPI_SUCCESS : MPI_ERR_ARG);
} VIADUCT_MPI_CATCH()

VIADUCT_MPIX(Delete_error_code, (int errorcode)) {
    AnyTimeCall call("MPIX_Delete_error_code");
    return call.result(delete_error_code(errorcode) ? MPI_SUCCESS : MPI_ERR_ARG);
} VIADUCT_MPI_CATCH()

VIADUCT_MPIX(Delete_error_string, (int errorcode)) {
    AnyTimeCall call("MPIX_Delete_error_string");
    return call.result(set_error_text(errorcode, "") ? MPI_SUCCESS : MPI_ERR_ARG);
} VIADUCT_MPI_CATCH()
