// SPDX-License-Identifier: BSD-2-Clause
// Partitioned communication. See partitioned.hpp.
#include "mpi-adi/engine/partitioned.hpp"

#include <algorithm>
#include <list>

#include "mpi-adi/engine/awaited.hpp"
#include "mpi-adi/engine/request.hpp"

namespace viaduct::mpi {

// The receive of a plan. One that is given up before the plan came must still take it, or the next request of that
// sender and tag would.
struct Partitioned::Introduction {
    Plan plan{};
    Request* request = nullptr;
};

namespace {

// Tags of the sender's parts: any that no other partitioned message of this process to any process uses at the time.
int64_t take_tags(int64_t n) {
    static int64_t next = 0;
    const int64_t first = next;
    next = (next + n) & kMaxOwnTag;
    return first;
}

}  // namespace

class Partitioned::Round final : public Activity {
  public:
    explicit Round(std::shared_ptr<Partitioned> of) : of_(std::move(of)) {}
    bool advance(int* error) override { return of_->advance(error); }

  private:
    std::shared_ptr<Partitioned> of_;
};

Partitioned::Partitioned(Communicator& comm, bool sends, int peer, int tag, void* buffer, int partitions,
                         MPI_Count count, const Datatype& type)
    : comm_(comm),
      sends_(sends),
      peer_(peer),
      tag_(tag),
      buffer_(static_cast<char*>(buffer)),
      partitions_(partitions),
      count_(count),
      type_(type) {
    type_.retain();
}

std::shared_ptr<Partitioned> Partitioned::send(Communicator& comm, int peer, int tag, const void* buffer,
                                               int partitions, MPI_Count count, const Datatype& type) {
    std::shared_ptr<Partitioned> made(
        new Partitioned(comm, true, peer, tag, const_cast<void*>(buffer), partitions, count, type));
    made->plan_ = {take_tags(partitions), partitions, count * type.size};
    made->plan_known_ = true;
    made->parts_.resize(size_t(partitions));
    made->error_ = mpi::send(comm, Channel::partitioned, peer, tag, {&made->plan_, sizeof(Plan), nullptr, 0});
    return made;
}

std::shared_ptr<Partitioned> Partitioned::receive(Communicator& comm, int peer, int tag, void* buffer, int partitions,
                                                  MPI_Count count, const Datatype& type) {
    std::shared_ptr<Partitioned> made(new Partitioned(comm, false, peer, tag, buffer, partitions, count, type));
    if (peer != MPI_PROC_NULL) {
        made->introduction_ = std::make_unique<Introduction>();
        Introduction& coming = *made->introduction_;
        coming.request =
            irecv(comm, Channel::partitioned, peer, tag, {&coming.plan, sizeof(Plan), nullptr, 0});
    }
    return made;
}

Partitioned::~Partitioned() {
    static auto* given_up = new std::list<std::unique_ptr<Introduction>>();
    given_up->remove_if([](const auto& one) {
        const bool over = done(one->request);
        if (over) {
            (void)finish(one->request);  // the program has freed what it introduces
        }
        return over;
    });
    if (introduction_) {
        given_up->push_back(std::move(introduction_));
    }
    type_.release();
}

int Partitioned::part_tag(int64_t index) const {
    return kPartTags | int((plan_.first_tag + index) & kMaxOwnTag);
}

bool Partitioned::know_plan() {
    if (plan_known_ || !introduction_ || !done(introduction_->request)) {
        return plan_known_;
    }
    error_ = finish(introduction_->request);
    plan_ = introduction_->plan;
    introduction_.reset();
    plan_known_ = true;
    const bool sane =
        plan_.partitions > 0 && plan_.partitions <= kMaxOwnTag && plan_.bytes >= 0 && plan_.first_tag >= 0;
    if (error_ != MPI_SUCCESS) {
        plan_.partitions = 0;
    } else if (!sane) {
        plan_.partitions = 0;
        error_ = MPI_ERR_INTERN;
    } else if (plan_.bytes > 0 && plan_.partitions > partitions_ * count_ * type_.size / plan_.bytes) {
        error_ = MPI_ERR_TRUNCATE;
    }
    parts_.resize(size_t(plan_.partitions));
    return true;
}

Activity* Partitioned::begin() {
    for (Part& part : parts_) {
        part = {};
    }
    posted_ = false;
    return new Round(shared_from_this());
}

// A part of the sender's need not be whole items of ours: what has gaps is received into a staging buffer and unpacked
// when it is there.
void Partitioned::post_parts() {
    posted_ = true;
    const Payload whole = payload_of(buffer_, uint64_t(partitions_) * uint64_t(count_), type_);
    const auto bytes = uint64_t(plan_.bytes);
    for (int64_t i = 0; i < plan_.partitions; ++i) {
        Part& part = parts_[size_t(i)];
        char* to = static_cast<char*>(whole.base) + uint64_t(i) * bytes;
        if (whole.type) {
            part.packed = std::make_unique_for_overwrite<char[]>(bytes);
            to = part.packed.get();
        }
        part.given = true;
        part.request = irecv(comm_, Channel::collective, peer_, part_tag(i), {to, bytes, nullptr, 0});
    }
}

bool Partitioned::ready(int partition) {
    Part& part = parts_[size_t(partition)];
    if (part.given) {
        return false;
    }
    part.given = true;
    if (peer_ == MPI_PROC_NULL) {
        part.done = true;
        return true;
    }
    const void* from = buffer_ + partition * count_ * type_.extent();
    part.request = isend(comm_, Channel::collective, peer_, part_tag(partition),
                         payload_of(from, uint64_t(count_), type_));
    return true;
}

void Partitioned::end_part(int64_t index, int* error) {
    Part& part = parts_[size_t(index)];
    const int failed = finish(part.request);
    *error = *error ? *error : failed;
    part.request = nullptr;
    part.done = true;
    if (part.packed) {
        type_.unpack(buffer_, uint64_t(partitions_) * uint64_t(count_), uint64_t(index * plan_.bytes),
                     uint64_t(plan_.bytes), part.packed.get());
        part.packed.reset();
    }
}

bool Partitioned::advance(int* error) {
    if (peer_ == MPI_PROC_NULL) {
        owner_->no_process = true;
        const auto given = [](const Part& part) { return part.done; };
        return !sends_ || std::all_of(parts_.begin(), parts_.end(), given);
    }
    if (!know_plan()) {
        return false;
    }
    if (error_) {
        *error = error_;
        return true;
    }
    if (!sends_ && !posted_) {
        post_parts();
    }
    bool all = true;
    for (size_t i = 0; i < parts_.size(); ++i) {
        if (parts_[i].request && done(parts_[i].request)) {
            end_part(int64_t(i), error);
        }
        all = all && parts_[i].done;
    }
    if (all && !sends_) {
        owner_->r_rank = peer_;
        owner_->r_tag = tag_;
        owner_->r_length = plan_.partitions * plan_.bytes;
    }
    return all;
}

void Partitioned::add_awaited(Awaited& what) const {
    add_awaited_source(comm_, peer_, tag_, what);
    what.kind = WaitKind::receive;
}

bool Partitioned::arrived(int partition) {
    if (owner_->is_done()) {
        return true;
    }
    if (!plan_known_ || !posted_) {
        return false;
    }
    if (plan_.bytes == 0) {
        return std::all_of(parts_.begin(), parts_.end(), [](const Part& part) { return part.done; });
    }
    const int64_t own = count_ * type_.size;
    const int64_t begin = partition * own;
    const int64_t last = std::min(begin + own + plan_.bytes - 1, plan_.partitions * plan_.bytes) / plan_.bytes;
    for (int64_t i = begin / plan_.bytes; i < last; ++i) {
        if (!parts_[size_t(i)].done) {
            return false;
        }
    }
    return true;
}

}  // namespace viaduct::mpi
