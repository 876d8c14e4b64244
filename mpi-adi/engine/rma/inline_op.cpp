// SPDX-License-Identifier: BSD-2-Clause
// See inline_op.hpp.
#include "mpi-adi/engine/rma/inline_op.hpp"

#include <cstring>

#include "mpi-adi/engine/rma/target.hpp"

namespace viaduct::mpi::rma {
namespace {

// The buffers of the program are free.
void complete_here(Request* mine) {
    if (mine != nullptr) mpi::complete(mine, MPI_SUCCESS);
}

void await(Member& member, const Awaited& answer) {
    member.outstanding++;
    member.awaited.push(answer);
}

}  // namespace

void send_put(Window& window, int rank, uint64_t address, const void* data, uint64_t bytes, Request* mine) {
    InlineMessage message{{.kind = Kind::inline_put,
                           .bytes = static_cast<uint8_t>(bytes),
                           .number = ask_for_flush(window, window.member(rank)),
                           .address = address}};
    std::memcpy(message.data, data, bytes);
    send_inline_message(window, rank, message, bytes);
    complete_here(mine);
}

void send_get(Window& window, int rank, uint64_t address, const Awaited& answer) {
    await(window.member(rank), answer);
    tell(window, rank, {.kind = Kind::inline_get, .bytes = answer.bytes, .address = address});
}

void send_accumulate(Window& window, int rank, uint64_t address, const void* data, uint64_t bytes, MPI_Op op,
                     const Datatype& element, Request* mine) {
    InlineMessage message{{.kind = Kind::inline_accumulate,
                           .bytes = static_cast<uint8_t>(bytes),
                           .op = static_cast<uint16_t>(op),
                           .code = element.handle,
                           .number = ask_for_flush(window, window.member(rank)),
                           .address = address}};
    std::memcpy(message.data, data, bytes);
    send_inline_message(window, rank, message, bytes);
    complete_here(mine);
}

void send_get_accumulate(Window& window, int rank, uint64_t address, const void* data, MPI_Op op,
                         const Datatype& element, const Awaited& answer) {
    await(window.member(rank), answer);
    InlineMessage message{{.kind = Kind::inline_get_accumulate,
                           .bytes = answer.bytes,
                           .op = static_cast<uint16_t>(op),
                           .code = element.handle,
                           .address = address}};
    const size_t carried = op == MPI_NO_OP ? 0 : answer.bytes;
    if (carried > 0) std::memcpy(message.data, data, carried);
    send_inline_message(window, rank, message, carried);
}

void send_compare_swap(Window& window, int rank, uint64_t address, const void* value, const void* compare,
                       const Awaited& answer) {
    await(window.member(rank), answer);
    InlineMessage message{{.kind = Kind::compare_swap, .bytes = answer.bytes, .address = address}};
    std::memcpy(message.data, value, answer.bytes);
    std::memcpy(message.data + answer.bytes, compare, answer.bytes);
    send_inline_message(window, rank, message, 2 * size_t{answer.bytes});
}

bool take_answer(Member& member, int error, const char* data, size_t bytes) {
    if (member.awaited.empty()) return false;
    const Awaited one = member.awaited.pop();
    if (error == MPI_SUCCESS) {
        if (bytes != one.bytes) return false;
        std::memcpy(one.result, data, bytes);
    }
    member.outstanding--;
    if (one.mine != nullptr)
        mpi::complete(one.mine, error);
    else if (member.error == MPI_SUCCESS)
        member.error = error;
    return true;
}

uint64_t ask_for_flush(const Window& window, Member& member) {
    if (window.epoch == Epoch::started && window.flavor != MPI_WIN_FLAVOR_DYNAMIC) return 0;
    const bool first = !member.sent;
    member.sent = true;
    if (first) return ++member.flushes;
    member.unflushed = true;
    return 0;
}

void send_inline_message(Window& window, int rank, const InlineMessage& message, size_t data) {
    const size_t bytes = sizeof(InlineOp) + data;
    if (send_now(*window.comm, Channel::p2p, rank, kRequestTag, &message, bytes)) return;
    auto copy = std::make_unique_for_overwrite<char[]>(bytes);
    std::memcpy(copy.get(), &message, bytes);
    Request* request = isend(*window.comm, Channel::p2p, rank, kRequestTag, {copy.get(), bytes, nullptr, 0});
    if (request->is_done()) return free_request(request);
    request->owned = std::move(copy);
    detach_request(request);
}

void tell(Window& window, int rank, const InlineOp& inline_op) {
    if (rank == window.comm->rank) return window.target->control(rank, inline_op);
    send_inline_message(window, rank, {inline_op}, 0);
}

}  // namespace viaduct::mpi::rma
