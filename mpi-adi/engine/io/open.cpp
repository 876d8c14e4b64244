// SPDX-License-Identifier: BSD-2-Clause
// Opening and closing files. When all have come, rank 0 opens first, and makes the file if it is to be made:
// so MPI_MODE_EXCL means that the file was not there before, and an error is the same everywhere.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

#include "mpi-adi/engine/io/file.hpp"
#include "mpi-adi/engine/request.hpp"

namespace viaduct::mpi::io {
namespace {

// Without a hint, as many processes of a host access the file for all others: enough to copy by several
// processors.
constexpr int kAggregatorsOfHost = 4;

// What rank 0 tells the others before they open.
struct Opening {
    uint64_t context;
    int32_t amode;
    int32_t error;
};

int flags_of(int amode) {
    int flags = O_RDONLY;
    if (amode & MPI_MODE_WRONLY) flags = O_WRONLY;
    if (amode & MPI_MODE_RDWR) flags = O_RDWR;
    return flags;
}

int create_flags_of(int amode) {
    int flags = 0;
    if (amode & MPI_MODE_CREATE) flags |= O_CREAT;
    if (amode & MPI_MODE_EXCL) flags |= O_EXCL;
    return flags;
}

// In turn from each host, so that each takes part.
std::vector<int> choose_aggregators(const Communicator& comm, int wanted) {
    // By the first rank of each: numbers of nodes differ between jobs, and all processes must choose alike.
    std::map<int, int> first_of;
    std::map<int, std::vector<int>> hosts;
    for (int rank = 0; rank < comm.size; rank++) {
        const int node = world().nodes[static_cast<size_t>(comm.local->world[static_cast<size_t>(rank)])];
        hosts[first_of.try_emplace(node, rank).first->second].push_back(rank);
    }
    const int most = wanted > 0 ? std::min(wanted, comm.size) : comm.size;
    const int of_host = wanted > 0 ? comm.size : kAggregatorsOfHost;
    std::vector<int> chosen;
    for (int turn = 0; turn < of_host; turn++)
        for (const auto& [host, ranks] : hosts)
            if (static_cast<size_t>(turn) < ranks.size() && chosen.size() < static_cast<size_t>(most))
                chosen.push_back(ranks[static_cast<size_t>(turn)]);
    std::sort(chosen.begin(), chosen.end());
    return chosen;
}

bool on_several_hosts(const Communicator& comm) {
    auto node = [&](int rank) {
        return world().nodes[static_cast<size_t>(comm.local->world[static_cast<size_t>(rank)])];
    };
    for (int rank = 1; rank < comm.size; rank++)
        if (node(rank) != node(0)) return true;
    return false;
}

int start_view(File& file) {
    const Datatype& byte = *type_of(MPI_BYTE);
    return View::make(0, byte, byte, find_representation("native"), file.can_write(), &file.view);
}

// The position that all processes share lies in memory where they can, and at rank 0: nothing in the file
// system has to be removed when they die.
int make_pointer(File& file) {
    const int error = rma::win_allocate(*file.comm, file.comm->rank == 0 ? sizeof(int64_t) : 0, 1, MPI_SUCCESS, nullptr,
                                        false, &file.pointer);
    return error != MPI_SUCCESS ? error : rma::lock_all(*file.pointer, false);
}

// In all processes, or in none.
int drop_pointer(File& file) {
    if (file.pointer == nullptr) return MPI_SUCCESS;
    const int unlocked = rma::unlock_all(*file.pointer);
    const int freed = rma::win_free(std::exchange(file.pointer, nullptr));
    return unlocked != MPI_SUCCESS ? unlocked : freed;
}

// Each process sets its own position, rank 0 the shared one.
int go_to_end(File& file) {
    int64_t bytes = 0, before = 0;
    if (const int error = file.storage->size(&bytes)) return error;
    file.position = bytes;
    return file.comm->rank == 0 ? fetch_shared(file, bytes, &before) : MPI_SUCCESS;
}

int open_storage(File& file, Communicator& comm, int refused, Opening* opening) {
    int error = MPI_SUCCESS;
    // What a process did to the name before it came, such as removing an old file, is not done to the new one.
    if (const int failed = agree(comm, refused)) return refused != MPI_SUCCESS ? refused : failed;
    if (comm.rank == 0)
        opening->error = Storage::open(file.path, flags_of(file.amode) | create_flags_of(file.amode),
                                       file.hints.permissions, &file.storage);
    if (const int failed = tell_all(comm, opening)) return failed;
    if (opening->error != MPI_SUCCESS) return opening->error;
    if (opening->amode != file.amode)
        error = MPI_ERR_NOT_SAME;
    else if (comm.rank != 0)
        error = Storage::open(file.path, flags_of(file.amode), file.hints.permissions, &file.storage);
    const int failed = agree(comm, error);
    return error != MPI_SUCCESS ? error : failed;
}

int set_up(File& file, Communicator& comm, uint64_t context) {
    group_retain(comm.local);
    file.comm = make_intra(comm.local, context, nullptr, true);
    file.comm->fails_as_one = true;
    file.comm->name = file.path;
    file.comm->file = file.handle();
    set_handler(&file, handler_of(nullptr));
    if (const int error = apply_tuning(file)) return error;
    file.several_hosts = on_several_hosts(*file.comm);
    int error = start_view(file);
    if (error == MPI_SUCCESS) error = make_pointer(file);
    if (error == MPI_SUCCESS && (file.amode & MPI_MODE_APPEND)) error = go_to_end(file);
    // No process uses the shared position before it is set.
    const int failed = agree(*file.comm, error);
    if (failed != MPI_SUCCESS) (void)drop_pointer(file);  // the error that came first is told
    return error != MPI_SUCCESS ? error : failed;
}

}  // namespace

File::~File() {
    if (comm != nullptr) comm_release(*comm);
}

int apply_tuning(File& file) {
    if (const int error = tell_all(*file.comm, &file.hints.tuning)) return error;
    file.aggregators = choose_aggregators(*file.comm, file.hints.tuning.nodes);
    return MPI_SUCCESS;
}

std::string path_of(const std::string& name) {
    for (const char* prefix : {"ufs:", "nfs:", "xfs:", "lustre:", "gpfs:", "panfs:"})
        if (name.starts_with(prefix)) return name.substr(std::strlen(prefix));
    return name;
}

int open(Communicator& comm, const std::string& name, int amode, int refused, const Info* info, File** made) {
    auto file = std::make_unique<File>();
    file->path = path_of(name);
    file->amode = amode;
    if (info != nullptr) file->hints.take(*info);
    Opening opening{comm.rank == 0 ? new_context() : 0, amode, MPI_SUCCESS};
    if (const int error = open_storage(*file, comm, refused, &opening)) return error;
    if (const int error = set_up(*file, comm, opening.context)) return error;
    *made = file.release();
    add_file(*made);
    return MPI_SUCCESS;
}

int close(File* file) {
    Communicator& comm = *file->comm;
    int error = MPI_SUCCESS;
    if (file->split.request != nullptr) error = wait(file->split.request);
    if (const int failed = drop_pointer(*file); error == MPI_SUCCESS) error = failed;
    file->storage.reset();
    // All have closed it, and no process goes on before it is removed.
    if (file->amode & MPI_MODE_DELETE_ON_CLOSE) {
        if (const int failed = agree(comm, error)) error = failed;
        if (comm.rank == 0 && ::unlink(file->path.c_str()) != 0 && error == MPI_SUCCESS)
            error = error_of_errno(errno);
    }
    if (const int failed = agree(comm, error)) error = failed;
    return error;
}

int remove(const std::string& name) {
    return ::unlink(path_of(name).c_str()) == 0 ? MPI_SUCCESS : error_of_errno(errno);
}

}  // namespace viaduct::mpi::io
