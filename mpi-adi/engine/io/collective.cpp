// SPDX-License-Identifier: BSD-2-Clause
// See collective.hpp. One tag serves a whole operation: messages between two processes arrive in the order in
// which they were sent, and both go through the same stages.
#include "mpi-adi/engine/io/collective.hpp"

#include <algorithm>
#include <limits>
#include <new>

#include "mpi-adi/engine/coll/coll.hpp"
#include "mpi-adi/engine/request.hpp"
#include "mpi-adi/engine/robust/state.hpp"

namespace viaduct::mpi::io {
namespace {

// Pieces of this size are accessed as fast by their own process: the copies cost what the fewer calls save.
constexpr int64_t kLargePiece = 1 << 10;
// Between hosts the file lies behind a network, where every access costs a message.
constexpr int64_t kLargePieceRemote = 1 << 20;
// Aggregators' parts begin at multiples of this, so that no two write to one page.
constexpr int64_t kAlignment = 4096;

const Datatype& bytes_type() { return *type_of(MPI_BYTE); }

template <typename T>
coll::Items items(const T* values, size_t n) {
    return {values, static_cast<MPI_Count>(n * sizeof(T)), &bytes_type()};
}

template <typename T>
coll::Shares shares(std::vector<T>& values) {
    return {values.data(), {}, {}, sizeof(T), &bytes_type()};
}

}  // namespace

Collective::Collective(File& file, Access& access, int error, Job::Where where)
    : comm_(*file.comm),
      access_(access),
      where_(where),
      tuning_(file.hints.tuning),
      aggregators_(file.aggregators),
      several_hosts_(file.several_hosts),
      tag_(comm_.next_tag()),
      error_(error) {
    comm_retain(comm_);
    begin_plan();
}

Collective::~Collective() { comm_release(comm_); }

bool Collective::advance(int* error) {
    while (stage_ != Stage::finished && stage_done()) step();
    *error = error_ != MPI_SUCCESS ? error_ : agreed_error_;
    return stage_ == Stage::finished;
}

bool Collective::stage_done() {
    switch (stage_) {
        case Stage::plan:
        case Stage::sizes:
        case Stage::agree: {
            int failed = MPI_SUCCESS;
            if (!schedule_->advance(&failed)) return false;
            note(failed);
            schedule_.reset();
            return true;
        }
        case Stage::exchange:
        case Stage::reply:
            return requests_done();
        case Stage::alone:
        case Stage::access:
            if (!job_.done()) return false;
            note(job_.error());
            return true;
        default:
            return true;
    }
}

// From a stage that is over to the next one.
void Collective::step() {
    // Members that have seen a loss do not go on, and what others have told is not whole.
    if (robust::is_loss(error_)) {
        agreed_error_ = error_;
        stage_ = Stage::finished;
        return;
    }
    switch (stage_) {
        case Stage::plan:
            if (!worth_exchanging()) return begin_alone();
            divide();
            return begin_round();
        case Stage::sizes:
            return begin_exchange();
        case Stage::exchange:
            return begin_access();
        case Stage::access:
            return begin_reply();
        case Stage::reply:
            if (!access_.writes) take_replies();
            return ++round_ < rounds_ ? begin_round() : begin_agreement();
        default:
            stage_ = Stage::finished;
    }
}

void Collective::begin_plan() {
    const View& view = *access_.view;
    const bool empty = error_ != MPI_SUCCESS || access_.memory.bytes() == 0 || view.empty();
    own_plan_.can_exchange = view.ordered() && !access_.atomic ? 1 : 0;
    if (!empty) {
        own_plan_.first = view.offset_of(access_.at);
        own_plan_.last = view.offset_of(access_.end() - 1) + 1;
        const auto bytes = static_cast<int64_t>(access_.memory.bytes());
        own_plan_.piece_bytes = view.contiguous() ? bytes : std::min(bytes, view.piece_bytes());
    }
    plans_.resize(static_cast<size_t>(comm_.size));
    schedule_ = std::make_unique<Schedule>(comm_, tag_);
    coll::allgather(*schedule_, items(&own_plan_, 1), shares(plans_));
    stage_ = Stage::plan;
}

bool Collective::worth_exchanging() const {
    const Buffering wanted = access_.writes ? tuning_.writes : tuning_.reads;
    std::vector<Plan> busy;
    for (const Plan& plan : plans_) {
        if (plan.can_exchange == 0) return false;
        if (plan.first < plan.last) busy.push_back(plan);
    }
    if (busy.empty() || wanted == Buffering::disable) return false;
    if (wanted == Buffering::enable) return true;
    std::sort(busy.begin(), busy.end(), [](const Plan& a, const Plan& b) { return a.first < b.first; });
    bool interleaved = false;
    int64_t smallest = std::numeric_limits<int64_t>::max();
    for (size_t i = 0; i < busy.size(); i++) {
        interleaved |= i > 0 && busy[i].first < busy[i - 1].last;
        smallest = std::min(smallest, busy[i].piece_bytes);
    }
    return interleaved && smallest < (several_hosts_ ? kLargePieceRemote : kLargePiece);
}

void Collective::divide() {
    begin_ = std::numeric_limits<int64_t>::max();
    for (const Plan& plan : plans_) {
        if (plan.first == plan.last) continue;
        begin_ = std::min(begin_, plan.first);
        end_ = std::max(end_, plan.last);
    }
    begin_ -= begin_ % kAlignment;
    const auto parts = static_cast<int64_t>(aggregators_.size());
    part_bytes_ = (end_ - begin_ + parts - 1) / parts;
    part_bytes_ += (kAlignment - part_bytes_ % kAlignment) % kAlignment;
    rounds_ = (std::min(part_bytes_, end_ - begin_) + tuning_.buffer_bytes - 1) / tuning_.buffer_bytes;
    const auto own = std::find(aggregators_.begin(), aggregators_.end(), comm_.rank);
    if (own != aggregators_.end()) own_part_ = static_cast<int>(own - aggregators_.begin());
}

Extent Collective::window_of(size_t aggregator, int64_t round) const {
    const int64_t part = std::min(end_, begin_ + static_cast<int64_t>(aggregator) * part_bytes_);
    const int64_t part_end = std::min(end_, part + part_bytes_);
    const int64_t from = std::min(part_end, part + round * tuning_.buffer_bytes);
    return {from, std::min(part_end - from, tuning_.buffer_bytes)};
}

Extent Collective::stream_part(const Extent& window) const {
    if (own_plan_.first == own_plan_.last || window.length == 0) return {access_.at, 0};
    const View& view = *access_.view;
    const int64_t from = std::clamp(view.bytes_before(window.offset), access_.at, access_.end());
    const int64_t to =
        std::clamp(view.bytes_before(window.offset + window.length), access_.at, access_.end());
    return {from, to - from};
}

void Collective::begin_round() {
    const auto size = static_cast<size_t>(comm_.size);
    sizes_out_.assign(size, {});
    sizes_in_.assign(size, {});
    lists_out_.assign(aggregators_.size(), {});
    for (size_t a = 0; a < aggregators_.size(); a++) {
        const Extent part = stream_part(window_of(a, round_));
        ExtentCursor cursor(*access_.view, part.offset, part.offset + part.length);
        for (Extent extent; cursor.next(&extent);) lists_out_[a].push_back({extent.offset, extent.length});
        sizes_out_[static_cast<size_t>(aggregators_[a])] = {static_cast<int64_t>(lists_out_[a].size()),
                                                            part.length};
    }
    schedule_ = std::make_unique<Schedule>(comm_, tag_);
    coll::alltoall(*schedule_, shares(sizes_out_), shares(sizes_in_));
    stage_ = Stage::sizes;
}

void Collective::post_send(const void* data, int64_t bytes, int rank) {
    requests_.push_back(isend(comm_, Channel::collective, rank, tag_,
                              {const_cast<void*>(data), static_cast<uint64_t>(bytes), nullptr, 0}));
}

void Collective::post_receive(void* data, int64_t bytes, int rank) {
    requests_.push_back(
        irecv(comm_, Channel::collective, rank, tag_, {data, static_cast<uint64_t>(bytes), nullptr, 0}));
}

bool Collective::requests_done() {
    if (!std::all_of(requests_.begin(), requests_.end(),
                     [](const Request* request) { return request->is_done(); }))
        return false;
    lengths_.clear();
    for (Request* request : requests_) {
        lengths_.push_back(static_cast<int64_t>(request->r_length));
        note(finish(request));
    }
    requests_.clear();
    return true;
}

// Lists, and, of a write, data, go to the aggregators.
void Collective::begin_exchange() {
    stage_ = Stage::exchange;
    window_.reset();
    if (aggregates()) {
        window_ = std::make_unique<WindowPieces>(sizes_in_.size());
        for (size_t source = 0; source < sizes_in_.size(); source++) {
            const Sizes& told = sizes_in_[source];
            if (told.pieces == 0) continue;
            // Without memory for what others send, no process can go on.
            if (!window_->expect(source, told.pieces, told.bytes))
                end_job(MPI_ERR_NO_MEM, "no memory for a collective access to %s", comm_.name.c_str());
            const int rank = static_cast<int>(source);
            post_receive(window_->list(source).data(), told.pieces * static_cast<int64_t>(sizeof(Piece)),
                         rank);
            if (access_.writes) post_receive(window_->data(source), told.bytes, rank);
        }
    }
    staged_.clear();
    staged_.resize(aggregators_.size());
    for (size_t a = 0; a < aggregators_.size(); a++) {
        const std::vector<Piece>& list = lists_out_[a];
        if (list.empty()) continue;
        post_send(list.data(), static_cast<int64_t>(list.size() * sizeof(Piece)), aggregators_[a]);
        if (!access_.writes) continue;
        const Extent part = stream_part(window_of(a, round_));
        const auto position = static_cast<uint64_t>(part.offset - access_.at);
        const char* data = access_.memory.direct(position);
        if (data == nullptr) {
            staged_[a] = std::make_unique<char[]>(static_cast<size_t>(part.length));
            access_.memory.gather(position, static_cast<uint64_t>(part.length), staged_[a].get());
            data = staged_[a].get();
        }
        post_send(data, part.length, aggregators_[a]);
        access_.moved += static_cast<uint64_t>(part.length);
    }
}

void Collective::begin_access() {
    stage_ = Stage::access;
    if (!aggregates()) {
        job_.start(Job::Where::here, [] { return MPI_SUCCESS; });
        return;
    }
    const Extent window = window_of(static_cast<size_t>(own_part_), round_);
    for (size_t source = 0; source < sizes_in_.size(); source++)
        if (!window_->holds(source, sizes_in_[source].bytes, window.offset, window.offset + window.length))
            end_job(MPI_ERR_INTERN, "rank %d of a file's processes sent an impossible list of pieces",
                    static_cast<int>(source));
    job_.start(where_, [this] {
        return access_.writes ? window_->write(*access_.storage) : window_->read(*access_.storage);
    });
}

// What was read goes back; of a write there is nothing to say before the end.
void Collective::begin_reply() {
    stage_ = Stage::reply;
    if (access_.writes) return;
    staged_.clear();
    staged_.resize(aggregators_.size());
    // Receives come first in the list of requests, in the order of the aggregators.
    for (size_t a = 0; a < aggregators_.size(); a++) {
        if (lists_out_[a].empty()) continue;
        const Extent part = stream_part(window_of(a, round_));
        char* data = access_.memory.direct(static_cast<uint64_t>(part.offset - access_.at));
        if (data == nullptr) {
            staged_[a] = std::make_unique<char[]>(static_cast<size_t>(part.length));
            data = staged_[a].get();
        }
        post_receive(data, part.length, aggregators_[a]);
    }
    if (!aggregates()) return;
    for (size_t source = 0; source < sizes_in_.size(); source++)
        if (sizes_in_[source].pieces > 0)
            post_send(window_->data(source), window_->valid(source), static_cast<int>(source));
}

void Collective::take_replies() {
    size_t next = 0;
    for (size_t a = 0; a < aggregators_.size(); a++) {
        if (lists_out_[a].empty()) continue;
        const int64_t came = lengths_[next++];
        const Extent part = stream_part(window_of(a, round_));
        if (staged_[a] != nullptr)
            access_.memory.scatter(static_cast<uint64_t>(part.offset - access_.at),
                                   static_cast<uint64_t>(came), staged_[a].get());
        access_.moved += static_cast<uint64_t>(came);
    }
}

void Collective::begin_alone() {
    stage_ = Stage::alone;
    if (error_ != MPI_SUCCESS) {
        job_.start(Job::Where::here, [] { return MPI_SUCCESS; });
        return;
    }
    job_.start(where_, [this] { return run_alone(access_); });
}

// An aggregator's error is that of each process whose data it had.
void Collective::begin_agreement() {
    stage_ = Stage::agree;
    own_error_ = error_;
    schedule_ = std::make_unique<Schedule>(comm_, tag_);
    coll::allreduce(*schedule_, &own_error_, &agreed_error_, 1, *type_of(MPI_INT), *op_of(MPI_MAX));
}

}  // namespace viaduct::mpi::io
