// SPDX-License-Identifier: BSD-2-Clause
// What an MPI function on a file begins with: the lock, and the file whose error handler is called. And what
// all data access functions check.
#pragma once

#include "mpi-adi/engine/io/transfer.hpp"
#include "mpi-adi/mpi/call.hpp"

namespace viaduct::mpi {

class FileCall {
public:
    FileCall(const char* name, MPI_File handle) : name_(name), file_(io::file_of(handle)) {}

    bool valid() const { return file_ != nullptr; }
    io::File& operator*() const { return *file_; }
    io::File* operator->() const { return file_; }
    // Gives the code to the file's error handler and back; MPI_SUCCESS passes.
    [[nodiscard]] int result(int code) const { return code == MPI_SUCCESS ? code : io::raise(file_, code, name_); }
    // The same before the call ends, for a file that is closed by it.
    [[nodiscard]] int call_error_handler(int code) const {
        return code == MPI_SUCCESS ? code : io::tell(file_, code, name_);
    }

private:
    Critical guard_;
    const char* name_;
    io::File* file_;
};

// A transfer of the program, with the first of its arguments that is wrong as its error.
io::Transfer checked_transfer(const io::File& file, io::Position position, bool writes, bool collective,
                              MPI_Offset offset, const void* buffer, MPI_Count count, MPI_Datatype datatype);

// The three ways to end. Names are those of the calls.
[[nodiscard]] int access_now(const char* name, MPI_File fh, io::Position position, bool writes, bool collective,
                             MPI_Offset offset, const void* buffer, MPI_Count count, MPI_Datatype datatype,
                             MPI_Status* status);
[[nodiscard]] int access_later(const char* name, MPI_File fh, io::Position position, bool writes, bool collective,
                               MPI_Offset offset, const void* buffer, MPI_Count count, MPI_Datatype datatype,
                               MPI_Request* request);
[[nodiscard]] int begin_split(const char* name, MPI_File fh, io::Position position, bool writes, MPI_Offset offset,
                              const void* buffer, MPI_Count count, MPI_Datatype datatype);
[[nodiscard]] int end_split(const char* name, MPI_File fh, io::Position position, bool writes, const void* buffer,
                            MPI_Status* status);

}  // namespace viaduct::mpi

// Defines MPI_File_name for a file that is open, `call`; the body gives an error class.
#define VIADUCT_MPI_FILE(name, parameters, ...)              \
    VIADUCT_MPI(File_##name, parameters) {                   \
        FileCall call("MPI_File_" #name, fh);                \
        if (!call.valid()) return call.result(MPI_ERR_FILE); \
        return call.result([&]() -> int __VA_ARGS__());      \
    } VIADUCT_MPI_CATCH(fh)
