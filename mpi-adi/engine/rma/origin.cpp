// SPDX-License-Identifier: BSD-2-Clause
// See origin.hpp. Each operation has three ways: memory that this process has mapped is read and written at once, and
// so is memory that it reaches by system calls (foreign_access.hpp); for other memory a request is sent, see wire.hpp.
#include "mpi-adi/engine/rma/origin.hpp"

#include <cstring>

#include "mpi-adi/engine/engine.hpp"
#include "mpi-adi/engine/op.hpp"
#include "mpi-adi/engine/rma/foreign_access.hpp"
#include "mpi-adi/engine/rma/inline_op.hpp"
#include "mpi-adi/engine/rma/remote_access.hpp"
#include "mpi-adi/engine/rma/remote_words.hpp"
#include "mpi-adi/engine/rma/transfer.hpp"

namespace viaduct::mpi::rma {
namespace {

// Where the items of a target begin: here when it is reached directly, else in its own process.
struct Spot {
    char* direct = nullptr;
    uint64_t address = 0;
    int error = MPI_SUCCESS;
};

Spot spot_of(Window& window, int rank, MPI_Aint displacement, int64_t count, const Datatype& type) {
    Member& member = window.member(rank);
    int64_t offset = 0;
    int64_t low = 0;
    int64_t high = 0;
    if (displacement < 0 && window.flavor != MPI_WIN_FLAVOR_DYNAMIC) return {.error = MPI_ERR_DISP};
    if (__builtin_mul_overflow(displacement, member.disp_unit, &offset) ||
        !bounds_of(type, count, &low, &high))
        return {.error = MPI_ERR_RMA_RANGE};
    if (window.flavor == MPI_WIN_FLAVOR_DYNAMIC) {
        // What a member has attached is known of oneself and where it can be looked up; else to the member alone.
        char* const at = reinterpret_cast<char*>(offset);
        if (rank == window.comm->rank) {
            if (!window.attached.holds(at + low, high - low)) return {.error = MPI_ERR_RMA_RANGE};
            return {.direct = at, .address = static_cast<uint64_t>(offset)};
        }
        if (member.foreign != nullptr)
            if (const int error = foreign_check_attached(member, at + low, high - low)) return {.error = error};
        return {.address = static_cast<uint64_t>(offset)};
    }
    int64_t from = 0;
    int64_t to = 0;
    if (__builtin_add_overflow(offset, low, &from) || __builtin_add_overflow(offset, high, &to) ||
        (low != high && (from < 0 || to > member.size)))
        return {.error = MPI_ERR_RMA_RANGE};
    if (member.direct != nullptr) return {.direct = member.direct + offset};
    return {.address = static_cast<uint64_t>(member.base + offset)};
}

// Where items in one piece begin.
uint64_t first_byte(const Spot& spot, const Datatype& type) {
    return spot.address + static_cast<uint64_t>(type.true_lb);
}
char* first_byte(const Items& items) { return static_cast<char*>(items.base) + items.type->true_lb; }

// Whether an accumulate on `bytes` of these elements is short, with nothing between them.
bool is_inline_change(const Datatype& element, const Datatype& origin, const Datatype& target, uint64_t bytes) {
    return element.extent() == element.size && fits_inline(origin, bytes) && fits_inline(target, bytes);
}

// Without data to move nothing is sent, and what this process does itself is done: a request is complete at once.
int nothing(Window& window, Request** request) {
    if (request == nullptr) return MPI_SUCCESS;
    *request = new_operation(window);
    mpi::complete(*request, MPI_SUCCESS);
    return MPI_SUCCESS;
}
int done_at_once(Window& window, int error, Request** request) {
    return error == MPI_SUCCESS ? nothing(window, request) : error;
}

uint32_t new_reply_tag(Window& window) {
    return kFirstReplyTag + window.next_reply++ % static_cast<uint32_t>(kReplyTags);
}

// Head, layout and data in one message; `size` bytes that the caller fills in are behind the runs.
class Message {
public:
    Message(const Head& head, const std::vector<WireRun>& runs, size_t data) {
        const size_t runs_bytes = runs.size() * sizeof(WireRun);
        bytes_ = sizeof head + runs_bytes + data;
        memory_ = std::make_unique_for_overwrite<char[]>(bytes_);
        std::memcpy(memory_.get(), &head, sizeof head);
        if (runs_bytes > 0) std::memcpy(memory_.get() + sizeof head, runs.data(), runs_bytes);
        data_ = memory_.get() + sizeof head + runs_bytes;
    }
    char* data() { return data_; }

    void send(Window& window, int rank) {
        Request* request =
            isend(*window.comm, Channel::p2p, rank, kRequestTag, {memory_.get(), bytes_, nullptr, 0});
        if (request->is_done()) return free_request(request);
        request->owned = std::move(memory_);
        detach_request(request);
    }

private:
    std::unique_ptr<char[]> memory_;
    size_t bytes_;
    char* data_;
};

Head head_of(Kind kind, const Spot& spot, const Place& target, const Datatype& layout, uint64_t bytes,
             size_t runs) {
    return {.kind = kind,
            .runs = static_cast<uint32_t>(runs),
            .address = spot.address,
            .count = static_cast<uint64_t>(target.count),
            .extent = layout.extent(),
            .bytes = bytes};
}

// Sends the request, and its data with it or behind it. `mine` is complete when the data has left.
void send_with_data(Window& window, int rank, Head head, const std::vector<WireRun>& runs,
                    const Items& origin, const Datatype& origin_layout, Request* mine) {
    // What is answered is done when the answer has come.
    if (head.kind != Kind::get_accumulate) head.number = ask_for_flush(window, window.member(rank));
    if (head.bytes <= kInlineBytes) {
        Message message(head, runs, head.bytes);
        origin_layout.pack(origin.base, static_cast<uint64_t>(origin.count), 0, head.bytes, message.data());
        message.send(window, rank);
        if (mine != nullptr) mpi::complete(mine, MPI_SUCCESS);
        return;
    }
    Message(head, runs, 0).send(window, rank);
    Payload data = payload_of(origin.base, static_cast<uint64_t>(origin.count), origin_layout);
    data.bytes = head.bytes;
    (new Transfer(window, rank, mine))->send(data);
}

// The single basic type of both sides of an accumulate, and whether the operator works on it.
int element_for(MPI_Op op, const Datatype* origin, const Datatype& target, const Datatype** element) {
    *element = element_of(target);
    if (*element == nullptr) return MPI_ERR_TYPE;
    if (op == MPI_NO_OP) return MPI_SUCCESS;
    if (origin != nullptr && element_of(*origin) != *element) return MPI_ERR_TYPE;
    return op == MPI_REPLACE || op_loop(op, **element) != nullptr ? MPI_SUCCESS : MPI_ERR_OP;
}

// The data of one side as it lies in memory, packed unless it is in one piece already.
class Packed {
public:
    Packed(const Items& items, const Datatype& layout, uint64_t bytes) {
        if (layout.contiguous) {
            data_ = static_cast<char*>(items.base) + layout.true_lb;
            return;
        }
        copy_ = std::make_unique_for_overwrite<char[]>(bytes);
        layout.pack(items.base, static_cast<uint64_t>(items.count), 0, bytes, copy_.get());
        data_ = copy_.get();
    }
    const char* data() const { return data_; }

private:
    const char* data_;
    std::unique_ptr<char[]> copy_;
};

void apply_all(MPI_Op op, const Datatype& element, char* at, const Place& target, const Datatype& layout,
               uint64_t bytes, const char* data, char* result, Exclusion exclusion) {
    const auto width = static_cast<uint64_t>(element.extent());
    uint64_t done = 0;
    for_each_piece(layout, at, target.count, bytes, [&](char* piece, uint64_t length) {
        apply(op, element, piece, data == nullptr ? nullptr : data + done,
              result == nullptr ? nullptr : result + done, length / width, exclusion);
        done += length;
    });
}

// An accumulate that this process does itself.
int change_here(MPI_Op op, const Datatype& element, const Spot& spot, Member& member, const Place& target,
                const Datatype& layout, uint64_t bytes, const char* data, char* result) {
    if (spot.direct == nullptr)
        return foreign_apply({member, spot.address, target.count, layout, bytes}, op, element, data, result);
    apply_all(op, element, spot.direct, target, layout, bytes, data, result, member.exclusion());
    return MPI_SUCCESS;
}

}  // namespace

int put(Window& window, const Items& origin, const Place& target, Request** request) {
    if (const int error = begin_access(window, target.rank)) return error;
    if (origin.bytes() > target.bytes()) return MPI_ERR_TRUNCATE;
    const Spot spot = spot_of(window, target.rank, target.displacement, target.count, *target.type);
    if (spot.error != MPI_SUCCESS) return spot.error;
    if (origin.bytes() == 0) return nothing(window, request);
    if (spot.direct != nullptr) {
        const bool whole = copy_typed(origin.base, origin.count, *origin.type, spot.direct, target.count, *target.type);
        return whole ? nothing(window, request) : MPI_ERR_TRUNCATE;
    }
    if (Member& member = window.member(target.rank); member.foreign != nullptr)
        return done_at_once(
            window, foreign_put({member, spot.address, target.count, *target.type, origin.bytes()}, origin), request);
    if (window.member(target.rank).remote != nullptr && remote_put(window, origin, target, spot.address, request))
        return MPI_SUCCESS;
    Request* mine = request == nullptr ? nullptr : * request = new_operation(window);
    if (fits_inline(*origin.type, origin.bytes()) && fits_inline(*target.type, origin.bytes())) {
        send_put(window, target.rank, first_byte(spot, *target.type), first_byte(origin), origin.bytes(),
                 mine);
        return MPI_SUCCESS;
    }
    const std::vector<WireRun> runs = flatten(*target.type);
    const Head head = head_of(Kind::put, spot, target, *target.type, origin.bytes(), runs.size());
    send_with_data(window, target.rank, head, runs, origin, *origin.type, mine);
    return MPI_SUCCESS;
}

int get(Window& window, const Items& origin, const Place& target, Request** request) {
    if (const int error = begin_access(window, target.rank)) return error;
    if (target.bytes() > origin.bytes()) return MPI_ERR_TRUNCATE;
    const Spot spot = spot_of(window, target.rank, target.displacement, target.count, *target.type);
    if (spot.error != MPI_SUCCESS) return spot.error;
    if (target.bytes() == 0) return nothing(window, request);
    if (spot.direct != nullptr) {
        const bool whole = copy_typed(spot.direct, target.count, *target.type, origin.base, origin.count, *origin.type);
        return whole ? nothing(window, request) : MPI_ERR_TRUNCATE;
    }
    if (Member& member = window.member(target.rank); member.foreign != nullptr)
        return done_at_once(
            window, foreign_get({member, spot.address, target.count, *target.type, target.bytes()}, origin), request);
    if (window.member(target.rank).remote != nullptr && remote_get(window, origin, target, spot.address, request))
        return MPI_SUCCESS;
    Request* mine = request == nullptr ? nullptr : * request = new_operation(window);
    if (fits_inline(*origin.type, target.bytes()) && fits_inline(*target.type, target.bytes())) {
        send_get(window, target.rank, first_byte(spot, *target.type),
                 {first_byte(origin), static_cast<uint8_t>(target.bytes()), mine});
        return MPI_SUCCESS;
    }
    const std::vector<WireRun> runs = flatten(*target.type);
    Head head = head_of(Kind::get, spot, target, *target.type, target.bytes(), runs.size());
    head.reply_tag = new_reply_tag(window);
    Payload where = payload_of(origin.base, static_cast<uint64_t>(origin.count), *origin.type);
    where.bytes = head.bytes;
    (new Transfer(window, target.rank, mine))->receive(where, head.reply_tag, head.bytes);
    Message(head, runs, 0).send(window, target.rank);
    return MPI_SUCCESS;
}

int accumulate(Window& window, const Items& origin, const Place& target, MPI_Op op, Request** request) {
    if (const int error = begin_access(window, target.rank)) return error;
    if (origin.bytes() > target.bytes()) return MPI_ERR_TRUNCATE;
    const Spot spot = spot_of(window, target.rank, target.displacement, target.count, *target.type);
    if (spot.error != MPI_SUCCESS) return spot.error;
    if (origin.bytes() == 0) return nothing(window, request);
    const Datatype* element = nullptr;
    if (const int error = element_for(op, origin.type, *target.type, &element)) return error;
    const TypeRef from = whole_elements(*origin.type);
    const TypeRef to = whole_elements(*target.type);
    const uint64_t bytes = static_cast<uint64_t>(origin.count) * static_cast<uint64_t>(from->size);
    if (Member& member = window.member(target.rank); spot.direct != nullptr || member.foreign != nullptr) {
        const Packed data(origin, *from, bytes);
        return done_at_once(
            window, change_here(op, *element, spot, member, target, *to, bytes, data.data(), nullptr), request);
    } else if (const uint64_t at = first_byte(spot, *to); is_remote_word(member, op, *element, at, bytes)) {
        return remote_change(window, target.rank, op, *element, at, Packed(origin, *from, bytes).data(), nullptr,
                             request);
    }
    before_message(window, target.rank);
    Request* mine = request == nullptr ? nullptr : * request = new_operation(window);
    if (is_inline_change(*element, *from, *to, bytes)) {
        send_accumulate(window, target.rank, first_byte(spot, *to), first_byte(origin), bytes, op, *element,
                        mine);
        return MPI_SUCCESS;
    }
    const std::vector<WireRun> runs = flatten(*to);
    Head head = head_of(Kind::accumulate, spot, target, *to, bytes, runs.size());
    head.op = op;
    head.element = element->handle;
    send_with_data(window, target.rank, head, runs, origin, *from, mine);
    return MPI_SUCCESS;
}

int get_accumulate(Window& window, const Items& origin, const Items& result, const Place& target, MPI_Op op,
                   Request** request) {
    if (const int error = begin_access(window, target.rank)) return error;
    const bool changes = op != MPI_NO_OP;
    if (target.bytes() > result.bytes() || (changes && origin.bytes() != target.bytes()))
        return MPI_ERR_TRUNCATE;
    const Spot spot = spot_of(window, target.rank, target.displacement, target.count, *target.type);
    if (spot.error != MPI_SUCCESS) return spot.error;
    if (target.bytes() == 0) return nothing(window, request);
    const Datatype* element = nullptr;
    if (const int error = element_for(op, origin.type, *target.type, &element)) return error;
    if (element_of(*result.type) != element) return MPI_ERR_TYPE;
    const TypeRef to = whole_elements(*target.type);
    TypeRef back = whole_elements(*result.type);
    const uint64_t bytes = static_cast<uint64_t>(target.count) * static_cast<uint64_t>(to->size);
    if (Member& member = window.member(target.rank); spot.direct != nullptr || member.foreign != nullptr) {
        const TypeRef from = changes ? whole_elements(*origin.type) : TypeRef();
        const std::unique_ptr<Packed> data =
            changes ? std::make_unique<Packed>(origin, *from, bytes) : nullptr;
        const auto old = std::make_unique_for_overwrite<char[]>(bytes);
        if (const int error = change_here(op, *element, spot, member, target, *to, bytes,
                                          changes ? data->data() : nullptr, old.get()))
            return error;
        back->unpack(result.base, static_cast<uint64_t>(result.count), 0, bytes, old.get());
        return nothing(window, request);
    } else if (const uint64_t at = first_byte(spot, *to);
               back->contiguous && is_remote_word(member, op, *element, at, bytes)) {
        const TypeRef from = changes ? whole_elements(*origin.type) : TypeRef();
        const std::unique_ptr<Packed> data = changes ? std::make_unique<Packed>(origin, *from, bytes) : nullptr;
        return remote_change(window, target.rank, op, *element, at, changes ? data->data() : nullptr,
                             static_cast<char*>(result.base) + back->true_lb, request);
    }
    before_message(window, target.rank);
    Request* mine = request == nullptr ? nullptr : * request = new_operation(window);
    if (is_inline_change(*element, changes ? *origin.type : *to, *to, bytes) && back->contiguous) {
        send_get_accumulate(window, target.rank, first_byte(spot, *to),
                            changes ? first_byte(origin) : nullptr, op, *element,
                            {first_byte(result), static_cast<uint8_t>(bytes), mine});
        return MPI_SUCCESS;
    }
    const std::vector<WireRun> runs = flatten(*to);
    Head head = head_of(Kind::get_accumulate, spot, target, *to, bytes, runs.size());
    head.op = op;
    head.element = element->handle;
    head.reply_tag = new_reply_tag(window);
    auto staging =
        std::make_unique<StagingBuffer>(result.base, static_cast<uint64_t>(result.count), std::move(back), bytes);
    (new Transfer(window, target.rank, mine))->receive_staged(std::move(staging), head.reply_tag);
    if (changes) {
        const TypeRef from = whole_elements(*origin.type);
        send_with_data(window, target.rank, head, runs, origin, *from, nullptr);
    } else {
        Message(head, runs, 0).send(window, target.rank);
    }
    return MPI_SUCCESS;
}

int fetch_and_op(Window& window, const void* origin, void* result, const Datatype& type, int rank,
                 MPI_Aint displacement, MPI_Op op) {
    const Member& member = window.member(rank);
    if (member.direct == nullptr || type.basic == BasicClass::none) {
        const Items one{const_cast<void*>(origin), 1, &type};
        return get_accumulate(window, one, {result, 1, &type}, {rank, displacement, 1, &type}, op, nullptr);
    }
    if (const int error = begin_access(window, rank)) return error;
    const Spot spot = spot_of(window, rank, displacement, 1, type);
    if (spot.error != MPI_SUCCESS) return spot.error;
    if (op != MPI_REPLACE && op != MPI_NO_OP && op_loop(op, type) == nullptr) return MPI_ERR_OP;
    apply(op, type, spot.direct, static_cast<const char*>(origin), static_cast<char*>(result), 1,
          member.exclusion());
    return MPI_SUCCESS;
}

int compare_and_swap(Window& window, const void* origin, const void* compare, void* result,
                     const Datatype& type, int rank, MPI_Aint displacement) {
    if (const int error = begin_access(window, rank)) return error;
    const Spot spot = spot_of(window, rank, displacement, 1, type);
    if (spot.error != MPI_SUCCESS) return spot.error;
    const auto width = static_cast<size_t>(type.size);
    if (spot.direct != nullptr) {
        compare_swap(width, spot.direct, static_cast<const char*>(origin), static_cast<const char*>(compare),
                     static_cast<char*>(result), window.member(rank).exclusion());
        return MPI_SUCCESS;
    }
    if (Member& member = window.member(rank); member.foreign != nullptr)
        return foreign_compare_swap({member, spot.address, 1, type, width}, origin, compare, result);
    if (const uint64_t at = first_byte(spot, type); is_remote_swap(window.member(rank), width, at))
        return remote_compare_swap(window, rank, width, at, origin, compare, result);
    before_message(window, rank);
    send_compare_swap(window, rank, first_byte(spot, type), origin, compare,
                      {result, static_cast<uint8_t>(width), nullptr});
    return MPI_SUCCESS;
}

}  // namespace viaduct::mpi::rma
