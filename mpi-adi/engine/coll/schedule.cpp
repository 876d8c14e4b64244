// SPDX-License-Identifier: BSD-2-Clause
// Building and running schedules. See schedule.hpp.
#include "mpi-adi/engine/coll/schedule.hpp"

#include <algorithm>
#include <utility>

#include "mpi-adi/engine/awaited.hpp"
#include "mpi-adi/engine/robust/state.hpp"

namespace viaduct::mpi {

Schedule::Schedule(Communicator& comm, int tag) : comm_(&comm), messages_(&comm), tag_(tag) {
    comm_retain(comm);
    steps_.reserve(kOwnSteps);
}

Schedule::~Schedule() {
    for (const Datatype* type : types_) {
        type->release();
    }
    for (Operator* op : operators_) {
        op_release(op);
    }
    comm_release(*comm_);
}

void Schedule::send(const void* buffer, MPI_Count count, const Datatype& type, int peer) {
    steps_.push_back({Kind::send, peer, messages_, buffer, nullptr, count, &type, 0, nullptr, nullptr});
}

void Schedule::recv(void* buffer, MPI_Count count, const Datatype& type, int peer) {
    steps_.push_back({Kind::recv, peer, messages_, nullptr, buffer, count, &type, 0, nullptr, nullptr});
}

void Schedule::recv_whole(void* buffer, MPI_Count count, const Datatype& type, int peer) {
    recv(buffer, count, type, peer);
    steps_.back().whole = true;
}

void Schedule::copy(const void* in, MPI_Count in_count, const Datatype& in_type, void* out, MPI_Count out_count,
                    const Datatype& out_type) {
    steps_.push_back({Kind::copy, 0, nullptr, in, out, in_count, &in_type, out_count, &out_type, nullptr});
}

void Schedule::reduce(const void* in, void* inout, MPI_Count count, const Datatype& type, Operator& op) {
    steps_.push_back({Kind::reduce, 0, nullptr, in, inout, count, &type, 0, nullptr, &op});
}

void Schedule::call(std::function<int()> function) {
    calls_.push_back(std::move(function));
    steps_.push_back({Kind::call, int(calls_.size() - 1), nullptr, nullptr, nullptr, 0, nullptr, 0, nullptr, nullptr});
}

void Schedule::round() {
    if (!steps_.empty() && steps_.back().kind != Kind::round) {
        steps_.push_back({Kind::round, 0, nullptr, nullptr, nullptr, 0, nullptr, 0, nullptr, nullptr});
    }
}

char* Schedule::bytes(size_t n) {
    n = (n + 15) & ~size_t(15);
    if (small_used_ + n <= sizeof small_) {
        char* out = small_ + small_used_;
        small_used_ += n;
        return out;
    }
    memory_.push_back(std::make_unique_for_overwrite<char[]>(n));
    return memory_.back().get();
}

char* Schedule::items(MPI_Count count, const Datatype& type) {
    if (count == 0) {
        return bytes(1);
    }
    // Items may begin before their address and overlap backwards: from the lowest byte of any to the highest.
    MPI_Aint last = (count - 1) * type.extent();
    MPI_Aint low = std::min(type.true_lb, type.true_lb + last);
    MPI_Aint high = std::max(type.true_ub, type.true_ub + last);
    return bytes(size_t(high - low)) - low;
}

const Datatype& Schedule::keep(const Datatype& type) {
    if (!type.builtin) {
        type.retain();
        types_.push_back(&type);
    }
    return type;
}

Operator& Schedule::keep(Operator& op) {
    if (!op.is_builtin()) {
        op_retain(&op);
        operators_.push_back(&op);
    }
    return op;
}

int Schedule::local(const Step& step) {
    switch (step.kind) {
        case Kind::copy:
            return copy_typed(step.in, step.count, *step.type, step.out, step.out_count, *step.out_type)
                       ? MPI_SUCCESS
                       : MPI_ERR_TRUNCATE;
        case Kind::reduce: op_apply(*step.op, step.in, step.out, step.count, *step.type); return MPI_SUCCESS;
        case Kind::call: return calls_[size_t(step.peer)]();
        default: return MPI_SUCCESS;
    }
}

Payload Schedule::payload(const Step& step) const {
    if (step.kind == Kind::send) {
        return broken_ ? Payload{} : payload_of(step.in, uint64_t(step.count), *step.type);
    }
    return payload_of(step.out, uint64_t(step.count), *step.type);
}

Request* Schedule::begin(const Step& step) {
    whole_ = step.whole ? &step : nullptr;
    return step.kind == Kind::send ? isend(*step.comm, Channel::collective, step.peer, tag_, payload(step))
                                   : irecv(*step.comm, Channel::collective, step.peer, tag_, payload(step));
}

int Schedule::check_whole(const Step& step, const MPI_Status& status, int error) {
    if (error == MPI_SUCCESS && bytes_of(status) != step.count * step.type->size) {
        error = MPI_ERR_COUNT;
    }
    broken_ = error != MPI_SUCCESS;
    return error;
}

bool Schedule::advance(int* error) {
    while (true) {
        // What is under way must be complete before the next round, and every request must be given back.
        while (!pending_.empty()) {
            if (!done(pending_.back())) {
                return false;
            }
            MPI_Status status;
            const int failed = finish(pending_.back(), &status);
            pending_.pop_back();
            note(whole_ ? check_whole(*std::exchange(whole_, nullptr), status, failed) : failed);
        }
        note(robust::refusal(*comm_, Channel::collective));
        // Others wait for messages of ours no more than we for theirs.
        if (at_ == steps_.size() || robust::is_loss(error_)) {
            *error = error_;
            return true;
        }
        for (; at_ < steps_.size() && steps_[at_].kind != Kind::round; ++at_) {
            const Step& step = steps_[at_];
            if (step.kind == Kind::send || step.kind == Kind::recv) {
                pending_.push_back(begin(step));
            } else {
                note(local(step));
            }
        }
        at_ += at_ < steps_.size();
    }
}

void Schedule::rewind() {
    error_ = MPI_SUCCESS;
    broken_ = false;
    at_ = 0;
}

// What has begun uses memory of the schedule.
void Schedule::begin_all(size_t first, size_t last) try {
    pending_.reserve(pending_.size() + (last - first));
    for (size_t i = first; i < last; ++i) {
        const Step& step = steps_[i];
        if (step.kind == Kind::send || step.kind == Kind::recv) {
            pending_.push_back(begin(step));
        } else {
            note(local(step));
        }
    }
} catch (const std::bad_alloc&) {
    if (!pending_.empty()) {
        end_job(MPI_ERR_NO_MEM, "there is no memory for the rest of a collective call");
    }
    throw;
}

// One round of a blocking call. The usual ones, a send, a receive or one of each, need no request objects of ours.
int Schedule::run_round(size_t first, size_t last) {
    const Step* out = nullptr;
    const Step* in = nullptr;
    size_t messages = 0;
    for (size_t i = first; i < last; ++i) {
        if (steps_[i].kind == Kind::send) {
            out = &steps_[i];
            ++messages;
        } else if (steps_[i].kind == Kind::recv) {
            in = &steps_[i];
            ++messages;
        }
    }
    const bool simple = messages == last - first && messages == size_t(out != nullptr) + size_t(in != nullptr) &&
                        !(out && in && out->comm != in->comm);
    if (!simple) {
        begin_all(first, last);
        int error = wait_all(pending_.data(), int(pending_.size()));
        pending_.clear();
        return error;
    }
    if (out && in) {
        return viaduct::mpi::sendrecv(*out->comm, Channel::collective, out->peer, tag_, payload(*out), in->peer, tag_,
                                      payload(*in));
    }
    if (out) {
        return viaduct::mpi::send(*out->comm, Channel::collective, out->peer, tag_, payload(*out));
    }
    if (!in) {
        return MPI_SUCCESS;
    }
    MPI_Status status;
    const int failed = viaduct::mpi::recv(*in->comm, Channel::collective, in->peer, tag_, payload(*in), &status);
    return in->whole ? check_whole(*in, status, failed) : failed;
}

void Schedule::add_awaited(Awaited& what) const {
    for (const Request* request : pending_) {
        mpi::add_awaited(*request, what);
    }
}

int Schedule::run() {
    size_t first = 0;
    note(robust::refusal(*comm_, Channel::collective));
    while (first < steps_.size() && !robust::is_loss(error_)) {
        size_t last = first;
        while (last < steps_.size() && steps_[last].kind != Kind::round) {
            ++last;
        }
        note(run_round(first, last));
        first = last + 1;
    }
    return error_;
}

}  // namespace viaduct::mpi
