// SPDX-License-Identifier: BSD-2-Clause
// See target.hpp. What an origin says is checked before it is used: one that sends what cannot be ends
// the job, one that names memory which is not the window's gets an error.
#include "mpi-adi/engine/rma/target.hpp"

#include <algorithm>
#include <cstring>

#include "mpi-adi/engine/engine.hpp"
#include "mpi-adi/engine/op.hpp"

namespace viaduct::mpi::rma {
namespace {

bool wants_answer(Kind kind) { return kind == Kind::get || kind == Kind::get_accumulate; }

// Items of long data types need their alignment, which data behind a head may not have.
std::unique_ptr<char[]> aligned_copy(const char* data, uint64_t bytes) {
    auto copy = std::make_unique_for_overwrite<char[]>(bytes);
    std::memcpy(copy.get(), data, bytes);
    return copy;
}

}  // namespace

Target::Target(Window& window) : window_(window), streams_(static_cast<size_t>(window.comm->size)) {
    matcher().serve_by(this);
}

Target::~Target() {
    matcher().serve_by(nullptr);
    for (Stream& stream : streams_)
        for (Unexpected* message : stream.waiting) discard(message);
}

void Target::keep_busy(int source) {
    Stream& stream = streams_[static_cast<size_t>(source)];
    if (stream.busy) return;
    stream.busy = true;
    busy_.push_back(source);
}

// Only when nothing of the same origin is to be done before.
bool Target::take(Matcher&, int source, int tag, const void* data, size_t bytes) {
    const Stream& stream = streams_[static_cast<size_t>(source)];
    if (tag != kRequestTag || serving_ || stream.busy || matcher().find(source, kRequestTag) != nullptr)
        return false;
    serving_ = true;
    request(source, {static_cast<const char*>(data), bytes});
    serving_ = false;
    if (stream.receive != nullptr) keep_busy(source);
    return true;
}

bool Target::serve() {
    bool moved = false;
    // The word is given back by others without a message.
    if (!lockers_.empty() && lock_word() != nullptr) {
        const size_t before = lockers_.size();
        grant_waiting();
        moved = lockers_.size() != before;
    }
    while (Unexpected* message = matcher().find(MPI_ANY_SOURCE, kRequestTag)) {
        moved = true;
        matcher().remove(message);
        const int source = message->um_env.ev_rank;
        streams_[static_cast<size_t>(source)].waiting.push_back(message);
        keep_busy(source);
    }
    serving_ = true;
    for (size_t i = 0; i < busy_.size();) {
        const int source = busy_[i];
        moved |= advance(source);
        Stream& stream = streams_[static_cast<size_t>(source)];
        if (stream.receive == nullptr && stream.waiting.empty()) {
            stream.busy = false;
            busy_[i] = busy_.back();
            busy_.pop_back();
        } else {
            i++;
        }
    }
    serving_ = false;
    return moved;
}

// Serves what can be served of one origin; true when that was something.
bool Target::advance(int source) {
    Stream& stream = streams_[static_cast<size_t>(source)];
    bool moved = false;
    while (true) {
        if (stream.receive != nullptr) {
            if (!stream.receive->is_done() || !end_receive(source)) return moved;
        } else if (!stream.waiting.empty()) {
            Unexpected* message = stream.waiting.front();
            stream.waiting.pop_front();
            begin(source, message);
        } else {
            return moved;
        }
        moved = true;
    }
}

void Target::begin(int source, Unexpected* message) {
    const auto bytes = static_cast<size_t>(message->um_env.ev_len);
    if (message->um_buf != nullptr) {
        request(source, {message->um_buf, bytes});
        discard(message);
        if (engine.under_pressure) watch_memory();
        return;
    }
    Stream& stream = streams_[static_cast<size_t>(source)];
    stream.buffer = std::make_unique_for_overwrite<char[]>(bytes);
    stream.buffer_bytes = bytes;
    stream.has_head = false;
    stream.receive = new_request(Request::Kind::receive);
    set_up_receive_of_bytes(*stream.receive, *window_.comm, Channel::p2p, source, kRequestTag,
                            stream.buffer.get(), bytes);
    take_unexpected(message, stream.receive);
}

// What was waited for is here. True: the stream goes on.
bool Target::end_receive(int source) {
    Stream& stream = streams_[static_cast<size_t>(source)];
    const auto came = static_cast<uint64_t>(stream.receive->r_length);
    const int error = finish(std::exchange(stream.receive, nullptr));
    const std::unique_ptr<char[]> buffer = std::move(stream.buffer);
    if (robust::is_loss(error)) return true;
    if (error != MPI_SUCCESS) refuse(source);
    if (!stream.has_head) {
        request(source, {buffer.get(), stream.buffer_bytes});
        return true;
    }
    if (came != stream.head.bytes) refuse(source);
    const TypeRef layout = std::move(stream.layout);
    // A put has been received where it belongs.
    if (stream.head.kind != Kind::put && layout.get() != nullptr)
        operate(source, stream.head, *layout, buffer.get());
    answer_flush(source, stream.head);
    return true;
}

// The layout of a request, mostly that of the one before. Null when it contradicts itself.
TypeRef Target::layout_of(const Head& head, const char* runs) {
    const size_t bytes = size_t{head.runs} * sizeof(WireRun);
    const bool known = layout_.get() != nullptr && extent_ == head.extent && runs_.size() == head.runs &&
                       (bytes == 0 || std::memcmp(runs_.data(), runs, bytes) == 0);
    if (!known) {
        runs_.resize(head.runs);
        if (bytes > 0) std::memcpy(runs_.data(), runs, bytes);
        extent_ = head.extent;
        layout_ = unflatten(runs_, extent_);
        if (layout_.get() == nullptr) return {};
    }
    return TypeRef::share(*layout_);
}

// A whole request: data that does not travel with it is received first. Its memory may be the sender's too,
// so that what is checked is copied before.
void Target::request(int source, Bytes bytes) {
    if (bytes.size == 0) refuse(source);
    if (is_inline(static_cast<Kind>(*bytes.data))) return take_inline(source, bytes.data, bytes.size);
    Head head;
    if (bytes.size < sizeof head) refuse(source);
    std::memcpy(&head, bytes.data, sizeof head);
    if (is_inline(head.kind)) refuse(source);

    const size_t runs_bytes = size_t{head.runs} * sizeof(WireRun);
    const bool data_here = carries_data(head) && head.bytes <= kInlineBytes;
    const size_t data_bytes = data_here ? head.bytes : 0;
    if (bytes.size != sizeof head + runs_bytes + data_bytes) refuse(source);
    TypeRef layout = layout_of(head, bytes.data + sizeof head);
    if (layout.get() == nullptr || !has_room(head, *layout)) refuse(source);

    Stream& stream = streams_[static_cast<size_t>(source)];
    const bool good = reaches(head, *layout);
    if (!good && !wants_answer(head.kind)) stream.error = MPI_ERR_RMA_RANGE;
    if (carries_data(head) && !data_here) {
        stream.head = head;
        stream.layout = good ? std::move(layout) : TypeRef();
        return receive_data(source);
    }
    if (good)
        operate(source, head, *layout, bytes.data + sizeof head + runs_bytes);
    else if (wants_answer(head.kind))
        answer(source, head, nullptr, 0);
    answer_flush(source, head);
}

// An operation that asks for the next flush itself is done.
void Target::answer_flush(int source, const Head& head) {
    if (head.number != 0 && !wants_answer(head.kind)) tell_flushed(source, head.number);
}

// A put goes to its place at once; anything else, and what has no place, is received into a buffer of its own.
void Target::receive_data(int source) {
    Stream& stream = streams_[static_cast<size_t>(source)];
    const Head& head = stream.head;
    stream.has_head = true;
    Payload where;
    if (head.kind == Kind::put && stream.layout.get() != nullptr) {
        where = payload_of(reinterpret_cast<void*>(head.address), head.count, *stream.layout);
        where.bytes = head.bytes;
    } else {
        if (wants_answer(head.kind) && stream.layout.get() == nullptr) answer(source, head, nullptr, 0);
        stream.buffer = std::make_unique_for_overwrite<char[]>(head.bytes);
        where = {stream.buffer.get(), head.bytes, nullptr, 0};
    }
    stream.receive = irecv(*window_.comm, Channel::p2p, source, kDataTag, where);
}

bool Target::reaches(const Head& head, const Datatype& layout) const {
    int64_t low = 0;
    int64_t high = 0;
    if (!bounds_of(layout, static_cast<int64_t>(head.count), &low, &high)) return false;
    const auto address = static_cast<int64_t>(head.address);
    if (__builtin_add_overflow(address, low, &low) || __builtin_add_overflow(address, high, &high))
        return false;
    return reaches(low, high);
}

// Of addresses.
bool Target::reaches(int64_t low, int64_t high) const {
    if (low == high) return true;
    if (window_.flavor == MPI_WIN_FLAVOR_DYNAMIC)
        return window_.attached.holds(reinterpret_cast<const char*>(low), high - low);
    const auto base = static_cast<int64_t>(reinterpret_cast<uintptr_t>(window_.base));
    return low >= base && high - base <= window_.size;
}

void Target::operate(int source, const Head& head, const Datatype& layout, const char* data) {
    char* const at = reinterpret_cast<char*>(head.address);
    const Exclusion exclusion = window_.self().exclusion();
    if (head.kind == Kind::put) {
        if (head.bytes > 0) layout.unpack(at, head.count, 0, head.bytes, data);
        return;
    }
    if (head.kind == Kind::get) {
        Payload payload = payload_of(at, head.count, layout);
        payload.bytes = head.bytes;
        Request* send = isend(*window_.comm, Channel::p2p, source, static_cast<int>(head.reply_tag), payload);
        send->is_done() ? free_request(send) : detach_request(send);
        return;
    }
    const Datatype* const element = type_of(head.element);
    if (element == nullptr || element->basic == BasicClass::none || element->size == 0) refuse(source);
    if (head.op != MPI_REPLACE && head.op != MPI_NO_OP && op_loop(head.op, *element) == nullptr)
        refuse(source);
    const auto width = static_cast<uint64_t>(element->extent());
    std::unique_ptr<char[]> copy;
    if (reinterpret_cast<uintptr_t>(data) % 16 != 0 && head.op != MPI_NO_OP) {
        copy = aligned_copy(data, head.bytes);
        data = copy.get();
    }
    const bool fetches = head.kind == Kind::get_accumulate;
    std::unique_ptr<char[]> old;
    if (fetches) old = std::make_unique_for_overwrite<char[]>(head.bytes);
    uint64_t done = 0;
    for_each_piece(layout, at, static_cast<int64_t>(head.count), head.bytes,
                   [&](char* piece, uint64_t bytes) {
                       if (bytes % width != 0) refuse(source);
                       apply(head.op, *element, piece, data + done, fetches ? old.get() + done : nullptr,
                             bytes / width, exclusion);
                       done += bytes;
                   });
    if (fetches) answer(source, head, old.get(), head.bytes);
}

// Nothing at all tells the origin that its operation named memory which is not here.
void Target::answer(int source, const Head& head, const void* data, uint64_t bytes) {
    std::unique_ptr<char[]> copy;
    if (bytes > 0) copy = aligned_copy(static_cast<const char*>(data), bytes);
    Request* send = isend(*window_.comm, Channel::p2p, source, static_cast<int>(head.reply_tag),
                          {copy.get(), bytes, nullptr, 0});
    if (send->is_done()) return free_request(send);
    send->owned = std::move(copy);
    detach_request(send);
}

// All that came from there before has been done.
void Target::tell_flushed(int source, uint64_t number) {
    const int error = std::exchange(streams_[static_cast<size_t>(source)].error, MPI_SUCCESS);
    tell(window_, source, {.kind = Kind::flushed, .code = error, .number = number});
}

void Target::control(int source, const InlineOp& inline_op) {
    Member& member = window_.member(source);
    switch (inline_op.kind) {
        case Kind::flush:
            return tell_flushed(source, inline_op.number);
        case Kind::flushed:
            member.flushed = inline_op.number;
            if (inline_op.code != MPI_SUCCESS && member.error == MPI_SUCCESS) member.error = inline_op.code;
            return;
        case Kind::lock_shared:
            return lock(source, LockKind::shared);
        case Kind::lock_exclusive:
            return lock(source, LockKind::exclusive);
        case Kind::granted:
            member.granted = true;
            return;
        case Kind::unlock:
            unlock(source);
            return tell_flushed(source, inline_op.number);
        case Kind::post:
            member.posts++;
            return;
        case Kind::complete:
            member.completes++;
            return;
        default:
            refuse(source);
    }
}

void Target::lock(int source, LockKind kind) {
    lockers_.emplace_back(source, kind);
    grant_waiting();
}

void Target::unlock(int source) {
    LockWord* const word = lock_word();
    if (writer_ == source) {
        writer_ = -1;
        if (word != nullptr) word->release_exclusive();
    } else if (readers_ > 0) {
        readers_--;
        if (word != nullptr) word->release_shared();
    } else {
        refuse(source);
    }
    grant_waiting();
}

LockWord* Target::lock_word() const {
    MemberLine* const line = window_.self().line;
    return line == nullptr ? nullptr : &line->lock;
}

// In the order of the requests, so that no process waits for ever.
void Target::grant_waiting() {
    while (!lockers_.empty() && grant(lockers_.front().first, lockers_.front().second)) lockers_.pop_front();
}

bool Target::grant(int source, LockKind kind) {
    if (writer_ >= 0 || (kind == LockKind::exclusive && readers_ > 0)) return false;
    LockWord* const word = lock_word();
    if (word != nullptr && !(kind == LockKind::exclusive ? word->try_exclusive() : word->try_shared())) return false;
    if (kind == LockKind::exclusive)
        writer_ = source;
    else
        readers_++;
    tell(window_, source, {.kind = Kind::granted});
    return true;
}

void Target::refuse(int source) const {
    end_job(MPI_ERR_INTERN, "rank %d of window %s sent a request that cannot be", source,
            window_.name.c_str());
}

}  // namespace viaduct::mpi::rma
