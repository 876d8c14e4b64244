// SPDX-License-Identifier: BSD-2-Clause
// The target's side of inline operations: operations on a few bytes, done at once.
#include <cstring>

#include "mpi-adi/engine/op.hpp"
#include "mpi-adi/engine/rma/apply.hpp"
#include "mpi-adi/engine/rma/direct_access.hpp"
#include "mpi-adi/engine/rma/inline_op.hpp"
#include "mpi-adi/engine/rma/target.hpp"

namespace viaduct::mpi::rma {
namespace {

bool asks_back(Kind kind) {
    return kind == Kind::inline_get || kind == Kind::inline_get_accumulate || kind == Kind::compare_swap;
}

MPI_Op op_of(const InlineOp& inline_op) { return kPredefinedOps | inline_op.op; }

// Data that travels with an operation.
size_t carried_by(const InlineOp& inline_op) {
    switch (inline_op.kind) {
        case Kind::inline_get:
            return 0;
        case Kind::compare_swap:
            return 2 * size_t{inline_op.bytes};
        case Kind::inline_get_accumulate:
            return op_of(inline_op) == MPI_NO_OP ? 0 : inline_op.bytes;
        default:
            return inline_op.bytes;
    }
}

// The predefined type that an accumulate names, if the operator works on whole items of it.
const Datatype* element_for(const InlineOp& inline_op) {
    const Datatype* const element = type_of(inline_op.code);
    if (element == nullptr || element->basic == BasicClass::none || element->size <= 0 ||
        element->extent() != element->size || inline_op.bytes % element->size != 0)
        return nullptr;
    const MPI_Op op = op_of(inline_op);
    const bool fetches = inline_op.kind == Kind::inline_get_accumulate;
    if (op == MPI_REPLACE || (op == MPI_NO_OP && fetches)) return element;
    return op != MPI_NO_OP && op_loop(op, *element) != nullptr ? element : nullptr;
}

}  // namespace

void Target::take_inline(int source, const char* bytes, size_t size) {
    InlineOp inline_op;
    if (size < sizeof inline_op || size > sizeof inline_op + kInlineOpBytes) refuse(source);
    std::memcpy(&inline_op, bytes, sizeof inline_op);
    alignas(16) char data[kInlineOpBytes];  // long data types need their alignment
    const size_t carried = size - sizeof inline_op;
    std::memcpy(data, bytes + sizeof inline_op, carried);
    if (inline_op.kind == Kind::answer) {
        if (!take_answer(window_.member(source), inline_op.code, data, carried)) refuse(source);
        return;
    }
    if (inline_op.kind > Kind::compare_swap) return control(source, inline_op);
    if (inline_op.bytes == 0 || inline_op.bytes > kInlineOpBytes || carried != carried_by(inline_op)) refuse(source);

    const auto from = static_cast<int64_t>(inline_op.address);
    int64_t to = 0;
    const bool good = !__builtin_add_overflow(from, int64_t{inline_op.bytes}, &to) && reaches(from, to);
    char old[kInlineOpBytes];
    if (good) change(source, inline_op, data, old);
    if (asks_back(inline_op.kind))
        answer_inline(source, good ? MPI_SUCCESS : MPI_ERR_RMA_RANGE, old, good ? inline_op.bytes : 0);
    else if (!good)
        streams_[static_cast<size_t>(source)].error = MPI_ERR_RMA_RANGE;
    if (inline_op.number != 0) tell_flushed(source, inline_op.number);
}

// What an operation does to this process's memory; what was there into `old` where it is wanted.
void Target::change(int source, const InlineOp& inline_op, const char* data, char* old) {
    char* const at = reinterpret_cast<char*>(inline_op.address);
    const Exclusion exclusion = window_.self().exclusion();
    switch (inline_op.kind) {
        case Kind::inline_put:
            return copy_item(at, data, inline_op.bytes);
        case Kind::inline_get:
            return copy_item(old, at, inline_op.bytes);
        case Kind::compare_swap:
            return compare_swap(inline_op.bytes, at, data, data + inline_op.bytes, old, exclusion);
        default:
            break;
    }
    const Datatype* const element = element_for(inline_op);
    if (element == nullptr) refuse(source);
    const bool fetches = inline_op.kind == Kind::inline_get_accumulate;
    apply(op_of(inline_op), *element, at, data, fetches ? old : nullptr,
          static_cast<size_t>(inline_op.bytes / element->size), exclusion);
}

void Target::answer_inline(int source, int error, const char* data, size_t bytes) {
    InlineMessage answer{{.kind = Kind::answer, .code = error}};
    std::memcpy(answer.data, data, bytes);
    send_inline_message(window_, source, answer, bytes);
}

}  // namespace viaduct::mpi::rma
