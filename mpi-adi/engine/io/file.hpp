// SPDX-License-Identifier: BSD-2-Clause
// An open file: what MPI_File stands for. Which file does what: open.cpp opens and closes, file.cpp keeps the
// handles and attributes of files, transfer.cpp begins and ends accesses, access.cpp makes those of one
// process, collective.cpp those of all together. All is called with the engine's lock held; results are MPI
// error classes.
#pragma once

#include <mpi.h>

#include <memory>
#include <string>
#include <vector>

#include "mpi-adi/engine/communicator.hpp"
#include "mpi-adi/engine/io/hints.hpp"
#include "mpi-adi/engine/io/storage.hpp"
#include "mpi-adi/engine/io/view.hpp"
#include "mpi-adi/engine/rma/window.hpp"

namespace viaduct::mpi::io {

// A split collective operation that has begun and not ended.
struct Split {
    Request* request = nullptr;
    enum class Kind { none, at, individual, ordered } kind = Kind::none;
    bool writes = false;
    const void* buffer = nullptr;
};

struct File {
    ~File();

    Communicator* comm = nullptr;  // private to the file; its error handler is the file's
    std::shared_ptr<Storage> storage;
    std::string path;
    int amode = 0;
    Hints hints;
    std::vector<int> aggregators;  // which ranks access the file when processes exchange data, by rank
    bool several_hosts = false;
    std::shared_ptr<const View> view;
    int64_t position = 0;            // of this process, in etypes
    rma::Window* pointer = nullptr;  // holds the shared position, in etypes, at rank 0
    bool atomic = false;
    Split split;

    MPI_File handle() { return reinterpret_cast<MPI_File>(this); }
    bool sequential() const { return (amode & MPI_MODE_SEQUENTIAL) != 0; }
    bool can_read() const { return (amode & MPI_MODE_WRONLY) == 0; }
    bool can_write() const { return (amode & MPI_MODE_RDONLY) == 0; }
};

// The file of a handle, or null.
File* file_of(MPI_File handle);
// Handles in Fortran: 0 is no file.
MPI_Fint number_of(MPI_File handle);
MPI_File handle_of(MPI_Fint number);
void add_file(File* file);
void remove_file(File* file);
// The paths of those that are open, sorted.
std::vector<std::string> open_paths();

// Runs the error handler of the file; null: that of MPI_FILE_NULL. MPI_SUCCESS passes.
[[nodiscard]] int tell(File* file, int code, const char* function);
// The same at the end of the MPI function.
[[nodiscard]] int raise(File* file, int code, const char* function);
// Of a file, or, without, of MPI_FILE_NULL: new files get it.
Errhandler* handler_of(File* file);
void set_handler(File* file, Errhandler* handler);

// Collective over the communicator. Arguments are checked as far as one process can.
// `refused`: what this process has found wrong before, which all others must be told.
[[nodiscard]] int open(Communicator& comm, const std::string& name, int amode, int refused, const Info* info,
                       File** made);
[[nodiscard]] int close(File* file);
[[nodiscard]] int remove(const std::string& name);
// The name without a prefix that says the kind of file system ("ufs:" and the like).
std::string path_of(const std::string& name);

// Collective, all with the same values: different ones are MPI_ERR_NOT_SAME everywhere. A negative size is MPI_ERR_ARG.
[[nodiscard]] int set_size(File& file, int64_t bytes);
[[nodiscard]] int preallocate(File& file, int64_t bytes);
[[nodiscard]] int sync(File& file);
[[nodiscard]] int set_atomicity(File& file, bool atomic);
[[nodiscard]] int set_hints(File& file, const Info& info);
[[nodiscard]] int set_view(File& file, int64_t displacement, const Datatype& etype, const Datatype& filetype,
                           const std::string& datarep, const Info* info);
// In place of set_view where an argument of this process is wrong: set_view of the others ends with `error`, and no
// view changes. Gives `error`.
[[nodiscard]] int refuse_view(File& file, int error);

// Positions are in etypes. MPI_ERR_ARG: a wrong `whence`, or a position below 0. seek_shared is collective; different
// arguments are MPI_ERR_NOT_SAME everywhere.
[[nodiscard]] int seek(File& file, int64_t offset, int whence);
[[nodiscard]] int seek_shared(File& file, int64_t offset, int whence);
// Adds to the shared position and gives what it was.
[[nodiscard]] int fetch_shared(File& file, int64_t etypes, int64_t* before);

// Makes the tuning of rank 0 that of all, and chooses which ranks access the file. Collective.
[[nodiscard]] int apply_tuning(File& file);

// Collective helpers. The first error of any process, by rank.
[[nodiscard]] int agree(Communicator& comm, int own_error);
[[nodiscard]] int tell_all(Communicator& comm, void* bytes, size_t n);
template <typename T>
[[nodiscard]] int tell_all(Communicator& comm, T* value) {
    return tell_all(comm, static_cast<void*>(value), sizeof(T));
}
// Whether all processes gave the same bytes as rank 0; in *same, everywhere alike.
[[nodiscard]] int compare_all(Communicator& comm, int64_t value, bool* same);

}  // namespace viaduct::mpi::io
