// SPDX-License-Identifier: BSD-2-Clause
// MPI functions that open, close and delete files, and on what a file carries: size, hints, atomicity, error
// handler.
#include <cstring>

#include "mpi-adi/mpi/file.hpp"

namespace viaduct::mpi {
namespace {

// The names of files are as long as the system takes them.
constexpr size_t kLongestName = 4096;

bool holds_name(const char* name) {
    return name != nullptr && *name != '\0' && strnlen(name, kLongestName) < kLongestName;
}

// MPI 4.0, 14.2.1.
int check_amode(int amode) {
    constexpr int kKnown = MPI_MODE_RDONLY | MPI_MODE_RDWR | MPI_MODE_WRONLY | MPI_MODE_CREATE |
                           MPI_MODE_EXCL | MPI_MODE_DELETE_ON_CLOSE | MPI_MODE_UNIQUE_OPEN |
                           MPI_MODE_SEQUENTIAL | MPI_MODE_APPEND;
    const int ways = amode & (MPI_MODE_RDONLY | MPI_MODE_RDWR | MPI_MODE_WRONLY);
    if ((amode & ~kKnown) != 0 ||
        (ways != MPI_MODE_RDONLY && ways != MPI_MODE_RDWR && ways != MPI_MODE_WRONLY))
        return MPI_ERR_AMODE;
    if (ways == MPI_MODE_RDONLY && (amode & (MPI_MODE_CREATE | MPI_MODE_EXCL))) return MPI_ERR_AMODE;
    return ways == MPI_MODE_RDWR && (amode & MPI_MODE_SEQUENTIAL) ? MPI_ERR_AMODE : MPI_SUCCESS;
}

// For MPI_FILE_NULL null is right.
bool knows(MPI_File handle) { return handle == MPI_FILE_NULL || io::file_of(handle) != nullptr; }

// Alike in all processes; the size, which may differ, is agreed on (io::set_size).
int check_resize(const io::File& file) {
    if (file.sequential()) return MPI_ERR_UNSUPPORTED_OPERATION;
    return file.can_write() ? MPI_SUCCESS : MPI_ERR_READ_ONLY;
}

}  // namespace
}  // namespace viaduct::mpi

using namespace viaduct::mpi;

VIADUCT_MPI(File_open, (MPI_Comm handle, const char* filename, int amode, MPI_Info info, MPI_File* fh)) {
    FileCall call("MPI_File_open", MPI_FILE_NULL);
    Communicator* comm = comm_of(handle);
    if (comm == nullptr || comm->inter) return call.result(MPI_ERR_COMM);
    int refused = check_amode(amode);
    if (fh == nullptr) refused = MPI_ERR_ARG;
    if (!is_info_or_none(info)) refused = MPI_ERR_INFO;
    if (!holds_name(filename)) refused = MPI_ERR_BAD_FILE;
    if (fh != nullptr) *fh = MPI_FILE_NULL;
    io::File* made = nullptr;
    const char* name = refused == MPI_SUCCESS ? filename : "";
    if (const int error = io::open(*comm, name, amode, refused, info_of(info), &made)) return call.result(error);
    *fh = made->handle();
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH(handle)

VIADUCT_MPI(File_close, (MPI_File * fh)) {
    FileCall call("MPI_File_close", fh == nullptr ? MPI_FILE_NULL : *fh);
    if (!call.valid()) return call.result(MPI_ERR_FILE);
    const int error = io::close(&*call);
    const int answer = call.call_error_handler(error);  // the handler is the file's
    io::remove_file(&*call);
    delete &*call;
    *fh = MPI_FILE_NULL;
    return answer;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(File_delete, (const char* filename, MPI_Info info)) {
    FileCall call("MPI_File_delete", MPI_FILE_NULL);
    if (!holds_name(filename)) return call.result(MPI_ERR_BAD_FILE);
    if (!is_info_or_none(info)) return call.result(MPI_ERR_INFO);
    return call.result(io::remove(filename));
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_FILE(set_size, (MPI_File fh, MPI_Offset size), {
    if (const int error = check_resize(*call)) return error;
    return io::set_size(*call, size);
})

VIADUCT_MPI_FILE(preallocate, (MPI_File fh, MPI_Offset size), {
    if (const int error = check_resize(*call)) return error;
    return io::preallocate(*call, size);
})

VIADUCT_MPI_FILE(get_size, (MPI_File fh, MPI_Offset* size), {
    if (size == nullptr) return MPI_ERR_ARG;
    return call->storage->size(size);
})

VIADUCT_MPI_FILE(get_group, (MPI_File fh, MPI_Group* group), {
    if (group == nullptr) return MPI_ERR_ARG;
    group_retain(call->comm->local);
    *group = group_publish(call->comm->local);
    return MPI_SUCCESS;
})

VIADUCT_MPI_FILE(get_amode, (MPI_File fh, int* amode), {
    if (amode == nullptr) return MPI_ERR_ARG;
    *amode = call->amode;
    return MPI_SUCCESS;
})

VIADUCT_MPI_FILE(set_info, (MPI_File fh, MPI_Info info), {
    const Info* given = info_of(info);
    // Also with an info that is wrong here: the others must not wait for this process.
    const int error = io::set_hints(*call, given == nullptr ? Info() : *given);
    return is_info_or_none(info) ? error : MPI_ERR_INFO;
})

VIADUCT_MPI_FILE(get_info, (MPI_File fh, MPI_Info* info_used), {
    if (info_used == nullptr) return MPI_ERR_ARG;
    Info* made = info_create();
    call->hints.give(*made);
    *info_used = made->handle;
    return MPI_SUCCESS;
})

VIADUCT_MPI_FILE(sync, (MPI_File fh), { return io::sync(*call); })

VIADUCT_MPI_FILE(set_atomicity, (MPI_File fh, int flag), { return io::set_atomicity(*call, flag != 0); })

VIADUCT_MPI_FILE(get_atomicity, (MPI_File fh, int* flag), {
    if (flag == nullptr) return MPI_ERR_ARG;
    *flag = call->atomic ? 1 : 0;
    return MPI_SUCCESS;
})

VIADUCT_MPI(File_create_errhandler, (MPI_File_errhandler_function * function, MPI_Errhandler* errhandler)) {
    Call call("MPI_File_create_errhandler");
    if (function == nullptr || errhandler == nullptr) return call.result(MPI_ERR_ARG);
    // Called by the kind it is made for; the first argument is a pointer in all of them.
    *errhandler =
        errhandler_create(ErrhandlerKind::file, reinterpret_cast<MPI_Comm_errhandler_function*>(function));
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(File_set_errhandler, (MPI_File file, MPI_Errhandler errhandler)) {
    FileCall call("MPI_File_set_errhandler", file);
    if (!knows(file)) return call.result(MPI_ERR_FILE);
    Errhandler* found = errhandler_of(errhandler);
    if (found == nullptr || (found->function != nullptr && found->kind != ErrhandlerKind::file))
        return call.result(MPI_ERR_ARG);
    io::set_handler(io::file_of(file), found);
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH(file)

VIADUCT_MPI(File_get_errhandler, (MPI_File file, MPI_Errhandler* errhandler)) {
    FileCall call("MPI_File_get_errhandler", file);
    if (!knows(file)) return call.result(MPI_ERR_FILE);
    if (errhandler == nullptr) return call.result(MPI_ERR_ARG);
    Errhandler* found = io::handler_of(io::file_of(file));
    errhandler_retain(found);
    *errhandler = found->handle;
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH(file)

VIADUCT_MPI(File_call_errhandler, (MPI_File fh, int errorcode)) {
    FileCall call("MPI_File_call_errhandler", fh);
    if (!knows(fh)) return call.result(MPI_ERR_FILE);
    (void)call.call_error_handler(errorcode);  // the handler has run: the call has succeeded
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH(fh)

// No error handler is called: a number that is no file's stands for MPI_FILE_NULL.
VIADUCT_MPI_EXPORT(MPI_File_c2f)
extern "C" __attribute__((visibility("default"))) MPI_Fint PMPI_File_c2f(MPI_File file) try {
    Critical guard;
    return io::number_of(file);
} catch (const std::bad_alloc&) {
    return 0;  // the number of MPI_FILE_NULL
}

VIADUCT_MPI_EXPORT(MPI_File_f2c)
extern "C" __attribute__((visibility("default"))) MPI_File PMPI_File_f2c(MPI_Fint file) {
    Critical guard;
    return io::handle_of(file);
}
