// SPDX-License-Identifier: BSD-2-Clause
// See transfer.hpp.
#include "mpi-adi/engine/io/transfer.hpp"

#include <optional>

#include "mpi-adi/engine/coll/coll.hpp"
#include "mpi-adi/engine/io/access.hpp"
#include "mpi-adi/engine/io/collective.hpp"
#include "mpi-adi/engine/request.hpp"

namespace viaduct::mpi::io {
namespace {

// Of a call that waits. With several threads the others have their turn meanwhile.
Job::Where where_of_blocking() { return EngineLock::enabled() ? Job::Where::worker : Job::Where::here; }

int64_t etypes_of(const File& file, uint64_t bytes) {
    const int64_t unit = file.view->etype_bytes();
    return unit == 0 ? 0 : static_cast<int64_t>(bytes) / unit;
}

// Bytes of the stream that the items make, which must be whole etypes.
int stream_bytes(const File& file, const Transfer& what, uint64_t* bytes) {
    *bytes = 0;
    if (what.error != MPI_SUCCESS) return what.error;
    const MPI_Aint item = file.view->representation().bytes_of(*what.type);
    if (item < 0) return MPI_ERR_CONVERSION;
    if (__builtin_mul_overflow(static_cast<uint64_t>(item), static_cast<uint64_t>(what.count), bytes) ||
        *bytes > INT64_MAX)
        return MPI_ERR_COUNT;
    const auto unit = static_cast<uint64_t>(file.view->etype_bytes());
    if (*bytes == 0) return MPI_SUCCESS;
    return unit == 0 || *bytes % unit != 0 ? MPI_ERR_ARG : MPI_SUCCESS;
}

// Moves the shared position past what a transfer uses. One past the largest offset, or that another process has moved
// there and not yet back, is moved back: the error then leaves the position as it was.
int use_shared(File& file, int64_t etypes, int64_t* position) {
    if (const int error = fetch_shared(file, etypes, position)) return error;
    int64_t next = 0;
    if (*position >= 0 && !__builtin_add_overflow(*position, etypes, &next)) return MPI_SUCCESS;
    int64_t ignored = 0;
    const int error = fetch_shared(file, -etypes, &ignored);
    return error != MPI_SUCCESS ? error : MPI_ERR_ARG;
}

// The shared position for each rank in turn: all tell how much they have, rank 0 moves the position by all of
// it.
int take_turns(File& file, int64_t etypes, int64_t* position) {
    Communicator& comm = *file.comm;
    const Datatype& bytes = *type_of(MPI_BYTE);
    std::vector<int64_t> all(static_cast<size_t>(comm.size));
    Schedule s(comm);
    coll::allgather(s, {&etypes, sizeof etypes, &bytes}, {all.data(), {}, {}, sizeof etypes, &bytes});
    if (const int error = s.run()) return error;
    int64_t before = 0, total = 0;
    for (int rank = 0; rank < comm.size; rank++) {
        if (rank == comm.rank) before = total;
        // Found alike by all.
        if (__builtin_add_overflow(total, all[static_cast<size_t>(rank)], &total)) return MPI_ERR_COUNT;
    }
    struct {
        int64_t position = 0;
        int64_t error = MPI_SUCCESS;
    } first;
    if (comm.rank == 0) first.error = use_shared(file, total, &first.position);
    if (const int error = tell_all(comm, &first)) return error;
    const bool too_far = __builtin_add_overflow(first.position, before, position);
    return first.error == MPI_SUCCESS && too_far ? MPI_ERR_ARG : static_cast<int>(first.error);
}

// Where the transfer begins, in etypes; moves the position that it uses past it.
int find_position(File& file, const Transfer& what, uint64_t bytes, int error, int64_t* position) {
    const int64_t etypes = error == MPI_SUCCESS ? etypes_of(file, bytes) : 0;
    int64_t next = 0;
    switch (what.position) {
        case Position::given:
            *position = what.offset;
            break;
        case Position::individual:
            *position = file.position;
            if (__builtin_add_overflow(file.position, etypes, &next)) return MPI_ERR_ARG;
            file.position = next;
            break;
        case Position::shared:
            if (what.collective) {
                const int failed = take_turns(file, etypes, position);
                return error != MPI_SUCCESS ? error : failed;
            }
            if (error == MPI_SUCCESS) return use_shared(file, etypes, position);
            break;
    }
    return error;
}

// A program's offset may be anything: what lies beyond the largest file is an error and not a small number.
int check_range(const File& file, int64_t position, uint64_t bytes) {
    int64_t at = 0, end = 0;
    const bool too_far = __builtin_mul_overflow(position, file.view->etype_bytes(), &at) ||
                         __builtin_add_overflow(at, bytes, &end) || end < 0;
    if (position < 0 || too_far) return MPI_ERR_ARG;
    return bytes == 0 || file.view->in_range(end) ? MPI_SUCCESS : MPI_ERR_ARG;
}

// A transfer that has begun.
class Running {
public:
    Running(File& file, const Transfer& what, Job::Where where) : writes_(what.writes) {
        uint64_t bytes = 0;
        int64_t position = 0;
        int error = stream_bytes(file, what, &bytes);
        error = find_position(file, what, bytes, error, &position);
        if (error == MPI_SUCCESS) error = check_range(file, position, bytes);
        const bool nothing = error != MPI_SUCCESS;
        access_.emplace(file.storage, file.view, what.writes,
                        nothing ? 0 : position * file.view->etype_bytes(), what.buffer,
                        nothing ? 0 : static_cast<uint64_t>(what.count),
                        nothing ? *type_of(MPI_BYTE) : *what.type);
        access_->atomic = file.atomic;
        if (!nothing) error = access_->memory.begin(what.writes);
        error_ = error;
        if (what.collective)
            collective_.emplace(file, *access_, error, where);
        else if (error == MPI_SUCCESS)
            job_.start(where, [this] { return run_alone(*access_); });
    }

    bool advance(int* error) {
        if (collective_) {
            if (!collective_->advance(error)) return false;
        } else {
            if (!job_.done()) return false;
            *error = error_ != MPI_SUCCESS ? error_ : job_.error();
        }
        if (error_ == MPI_SUCCESS) {
            const int failed = access_->memory.end(writes_, access_->moved, &data_);
            if (*error == MPI_SUCCESS) *error = failed;
        }
        return true;
    }
    int64_t data() const { return static_cast<int64_t>(data_); }

private:
    const bool writes_;
    std::optional<Access> access_;
    std::optional<Collective> collective_;
    Job job_;
    int error_ = MPI_SUCCESS;
    uint64_t data_ = 0;  // bytes moved, as they lie in memory
};

// A non-blocking one.
class Operation final : public Activity {
public:
    Operation(File& file, const Transfer& what, Request& request)
        : running_(file, what, Job::Where::worker), request_(request) {}
    bool advance(int* error) override {
        if (!running_.advance(error)) return false;
        request_.r_length = static_cast<decltype(request_.r_length)>(running_.data());
        return true;
    }

private:
    Running running_;
    Request& request_;
};

}  // namespace

int transfer(File& file, const Transfer& what, MPI_Status* status) {
    Running running(file, what, where_of_blocking());
    int error = MPI_SUCCESS;
    // The end of a transfer is not to be reached twice: it converts what was read.
    bool finished = false;
    const Unannounced by_worker;
    progress_until([&] { return finished = finished || running.advance(&error); });
    if (status != MPI_STATUS_IGNORE) {
        clear_status(status);
        set_count(status, running.data());
    }
    return error;
}

int start_transfer(File& file, const Transfer& what, Request** request) {
    if (what.error != MPI_SUCCESS && !what.collective) return what.error;
    *request = new_request(Request::Kind::file);
    (*request)->comm = file.comm;
    comm_retain(*file.comm);
    begin_activity(**request, new Operation(file, what, **request));
    return MPI_SUCCESS;
}

}  // namespace viaduct::mpi::io
