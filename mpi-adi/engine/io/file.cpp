// SPDX-License-Identifier: BSD-2-Clause
// Handles of files, their error handlers, and collective calls on an open file.
#include "mpi-adi/engine/io/file.hpp"

#include <algorithm>
#include <unordered_set>

#include "mpi-adi/engine/coll/coll.hpp"
#include "mpi-adi/engine/failure.hpp"
#include "mpi-adi/engine/rma/origin.hpp"

namespace viaduct::mpi::io {
namespace {

// Never destroyed: a program may leave from anywhere.
std::unordered_set<const File*>& files() {
    static auto* all = new std::unordered_set<const File*>;
    return *all;
}

// By number less one; a file keeps its number until it is closed.
std::vector<File*>& numbered() {
    static auto* all = new std::vector<File*>;
    return *all;
}

// Of MPI_FILE_NULL.
Errhandler*& default_handler() {
    static Errhandler* handler = errhandler_of(MPI_ERRORS_RETURN);
    return handler;
}

const Datatype& plain_bytes() { return *type_of(MPI_BYTE); }

bool is_whence(int whence) { return whence == MPI_SEEK_SET || whence == MPI_SEEK_CUR || whence == MPI_SEEK_END; }

// The end of the file in etypes of the view; one that is there in part counts.
int end_position(File& file, int64_t* etypes) {
    int64_t bytes = 0;
    if (const int error = file.storage->size(&bytes)) return error;
    const int64_t unit = std::max<int64_t>(file.view->etype_bytes(), 1);
    const int64_t data = file.view->bytes_before(bytes);
    *etypes = data / unit + (data % unit != 0 ? 1 : 0);
    return MPI_SUCCESS;
}

int target_of(File& file, int64_t current, int64_t offset, int whence, int64_t* target) {
    if (!is_whence(whence)) return MPI_ERR_ARG;
    int64_t base = 0;
    if (whence == MPI_SEEK_CUR) base = current;
    if (whence == MPI_SEEK_END)
        if (const int error = end_position(file, &base)) return error;
    if (__builtin_add_overflow(base, offset, target) || *target < 0) return MPI_ERR_ARG;
    return MPI_SUCCESS;
}

// An operation of rank 0 on behalf of all.
template <typename Work>
int by_first(File& file, Work&& work) {
    int error = file.comm->rank == 0 ? work() : MPI_SUCCESS;
    const int failed = tell_all(*file.comm, &error);
    return failed != MPI_SUCCESS ? failed : error;
}

// The difference is one of 64 bits that may wrap.
int move_shared(File& file, int64_t from, int64_t to) {
    int64_t before = 0;
    return fetch_shared(file, static_cast<int64_t>(static_cast<uint64_t>(to) - static_cast<uint64_t>(from)), &before);
}

// The same number everywhere, or MPI_ERR_NOT_SAME everywhere.
int check_same(File& file, int64_t value) {
    bool same = false;
    if (const int error = compare_all(*file.comm, value, &same)) return error;
    return same ? MPI_SUCCESS : MPI_ERR_NOT_SAME;
}

}  // namespace

File* file_of(MPI_File handle) {
    auto* file = reinterpret_cast<File*>(handle);
    return files().count(file) != 0 ? file : nullptr;
}

void add_file(File* file) { files().insert(file); }

std::vector<std::string> open_paths() {
    std::vector<std::string> paths;
    for (const File* file : files()) paths.push_back(file->path);
    std::sort(paths.begin(), paths.end());
    return paths;
}

void remove_file(File* file) {
    files().erase(file);
    std::replace(numbered().begin(), numbered().end(), file, static_cast<File*>(nullptr));
}

MPI_Fint number_of(MPI_File handle) {
    File* file = file_of(handle);
    if (file == nullptr) return 0;
    std::vector<File*>& all = numbered();
    auto place = std::find(all.begin(), all.end(), file);
    if (place == all.end()) place = std::find(all.begin(), all.end(), nullptr);
    if (place == all.end()) place = all.insert(all.end(), file);
    *place = file;
    return static_cast<MPI_Fint>(place - all.begin()) + 1;
}

MPI_File handle_of(MPI_Fint number) {
    const std::vector<File*>& all = numbered();
    if (number < 1 || static_cast<size_t>(number) > all.size()) return MPI_FILE_NULL;
    File* file = all[static_cast<size_t>(number) - 1];
    return file == nullptr ? MPI_FILE_NULL : file->handle();
}

int tell(File* file, int code, const char* function) {
    if (code == MPI_SUCCESS) [[likely]]
        return code;
    if (file != nullptr) return mpi::tell(file->comm, code, function);
    Errhandler* const handler = default_handler();
    if (handler->returns()) return code;
    if (handler->function == nullptr)
        end_job(code > 0 && code < 256 ? code : 1, "%s: %s (no open file)", function,
                error_text(code).c_str());
    MPI_File told_file = MPI_FILE_NULL;
    int told = code;
    errhandler_retain(handler);
    handler->call(reinterpret_cast<int*>(&told_file), &told, function);
    // The layer for C++ asks the handler by itself about every code that it is given.
    const bool asked_twice = handler->proxy != nullptr;
    errhandler_release(handler);
    return asked_twice ? MPI_SUCCESS : told;
}

int raise(File* file, int code, const char* function) {
    return code <= MPI_SUCCESS  // see publish()
               ? code
               : note_failure([](void* object, int error, const char* name) {
                     return tell(static_cast<File*>(object), error, name);
                 }, file, nullptr, code, function);
}

Errhandler* handler_of(File* file) { return file != nullptr ? file->comm->errhandler : default_handler(); }

void set_handler(File* file, Errhandler* handler) {
    Errhandler*& place = file != nullptr ? file->comm->errhandler : default_handler();
    errhandler_retain(handler);
    errhandler_release(place);
    place = handler;
}

int agree(Communicator& comm, int own_error) {
    std::vector<int> errors(static_cast<size_t>(comm.size));
    Schedule s(comm);
    coll::allgather(s, {&own_error, sizeof(int), &plain_bytes()},
                    {errors.data(), {}, {}, sizeof(int), &plain_bytes()});
    if (const int failed = s.run()) return failed;
    const auto first =
        std::find_if(errors.begin(), errors.end(), [](int error) { return error != MPI_SUCCESS; });
    return first == errors.end() ? MPI_SUCCESS : *first;
}

int tell_all(Communicator& comm, void* bytes, size_t n) {
    Schedule s(comm);
    coll::bcast_within(s, {bytes, static_cast<MPI_Count>(n), &plain_bytes()}, 0);
    return s.run();
}

int compare_all(Communicator& comm, int64_t value, bool* same) {
    std::vector<int64_t> all(static_cast<size_t>(comm.size));
    Schedule s(comm);
    coll::allgather(s, {&value, sizeof value, &plain_bytes()},
                    {all.data(), {}, {}, sizeof value, &plain_bytes()});
    const int error = s.run();
    *same = std::all_of(all.begin(), all.end(), [&](int64_t one) { return one == all.front(); });
    return error;
}

int set_size(File& file, int64_t bytes) {
    if (const int error = check_same(file, bytes)) return error;
    if (bytes < 0) return MPI_ERR_ARG;
    return by_first(file, [&] { return file.storage->set_size(bytes); });
}

int preallocate(File& file, int64_t bytes) {
    if (const int error = check_same(file, bytes)) return error;
    if (bytes < 0) return MPI_ERR_ARG;
    return by_first(file, [&] { return file.storage->preallocate(bytes); });
}

int sync(File& file) { return agree(*file.comm, file.can_write() ? file.storage->sync() : MPI_SUCCESS); }

int set_atomicity(File& file, bool atomic) {
    if (const int error = check_same(file, atomic ? 1 : 0)) return error;
    const bool possible = !atomic || file.storage->can_lock();
    if (const int error = agree(*file.comm, possible ? MPI_SUCCESS : MPI_ERR_UNSUPPORTED_OPERATION))
        return error;
    file.atomic = atomic;
    return MPI_SUCCESS;
}

int set_hints(File& file, const Info& info) {
    file.hints.take(info);
    return apply_tuning(file);
}

int set_view(File& file, int64_t displacement, const Datatype& etype, const Datatype& filetype,
             const std::string& datarep, const Info* info) {
    int error = MPI_SUCCESS;
    if (displacement == MPI_DISPLACEMENT_CURRENT) {
        int64_t position = 0, at = 0;
        error = fetch_shared(file, 0, &position);
        const bool found = !__builtin_mul_overflow(position, file.view->etype_bytes(), &at) && at >= 0 &&
                           file.view->find_offset(at, &displacement);
        if (error == MPI_SUCCESS && !found) error = MPI_ERR_ARG;
    }
    const auto representation = find_representation(datarep);
    std::shared_ptr<const View> view;
    if (error == MPI_SUCCESS)
        error = representation == nullptr
                    ? MPI_ERR_UNSUPPORTED_DATAREP
                    : View::make(displacement, etype, filetype, representation, file.can_write(), &view);
    // Also a barrier: no process moves the shared position before all have read it, or in units of the old view.
    if (const int failed = agree(*file.comm, error)) return error != MPI_SUCCESS ? error : failed;
    file.view = std::move(view);
    file.position = 0;
    error = by_first(file, [&] {
        int64_t before = 0;
        const int failed = fetch_shared(file, 0, &before);
        return failed != MPI_SUCCESS ? failed : move_shared(file, before, 0);
    });
    if (error != MPI_SUCCESS) return error;
    if (info != nullptr) file.hints.take(*info);
    return apply_tuning(file);
}

int refuse_view(File& file, int error) {
    (void)agree(*file.comm, error);  // the error of this process is told
    return error;
}

int seek(File& file, int64_t offset, int whence) {
    int64_t target = 0;
    if (const int error = target_of(file, file.position, offset, whence, &target)) return error;
    file.position = target;
    return MPI_SUCCESS;
}

int seek_shared(File& file, int64_t offset, int whence) {
    if (const int error = check_same(file, offset)) return error;
    if (const int error = check_same(file, whence)) return error;
    return by_first(file, [&] {
        int64_t before = 0, target = 0;
        if (const int error = fetch_shared(file, 0, &before)) return error;
        if (const int error = target_of(file, before, offset, whence, &target)) return error;
        return move_shared(file, before, target);
    });
}

int fetch_shared(File& file, int64_t etypes, int64_t* before) {
    const Datatype& type = *type_of(MPI_UINT64_T);  // past the largest offset it wraps
    if (const int error = rma::fetch_and_op(*file.pointer, &etypes, before, type, 0, 0, MPI_SUM))
        return error;
    return rma::flush(*file.pointer, 0, false);
}

}  // namespace viaduct::mpi::io
