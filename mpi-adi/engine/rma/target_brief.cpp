// SPDX-License-Identifier: BSD-2-Clause
// The target's side of brief requests: operations on a few bytes, done at once.
#include <cstring>

#include "mpi-adi/engine/op.hpp"
#include "mpi-adi/engine/rma/apply.hpp"
#include "mpi-adi/engine/rma/brief.hpp"
#include "mpi-adi/engine/rma/short_way.hpp"
#include "mpi-adi/engine/rma/target.hpp"

namespace viaduct::mpi::rma {
namespace {

bool asks_back(Kind kind) {
    return kind == Kind::brief_get || kind == Kind::brief_get_accumulate || kind == Kind::compare_swap;
}

MPI_Op op_of(const Brief& brief) { return kPredefinedOps | brief.op; }

// Data that travels with an operation.
size_t carried_by(const Brief& brief) {
    switch (brief.kind) {
        case Kind::brief_get:
            return 0;
        case Kind::compare_swap:
            return 2 * size_t{brief.bytes};
        case Kind::brief_get_accumulate:
            return op_of(brief) == MPI_NO_OP ? 0 : brief.bytes;
        default:
            return brief.bytes;
    }
}

// The predefined type that an accumulate names, if the operator works on whole items of it.
const Datatype* element_for(const Brief& brief) {
    const Datatype* const element = type_of(brief.code);
    if (element == nullptr || element->basic == BasicClass::none || element->size <= 0 ||
        element->extent() != element->size || brief.bytes % element->size != 0)
        return nullptr;
    const MPI_Op op = op_of(brief);
    const bool fetches = brief.kind == Kind::brief_get_accumulate;
    if (op == MPI_REPLACE || (op == MPI_NO_OP && fetches)) return element;
    return op != MPI_NO_OP && op_loop(op, *element) != nullptr ? element : nullptr;
}

}  // namespace

void Target::brief(int source, const char* bytes, size_t size) {
    Brief brief;
    if (size < sizeof brief || size > sizeof brief + kBriefBytes) refuse(source);
    std::memcpy(&brief, bytes, sizeof brief);
    alignas(16) char data[kBriefBytes];  // long data types need their alignment
    const size_t carried = size - sizeof brief;
    std::memcpy(data, bytes + sizeof brief, carried);
    if (brief.kind == Kind::answer) {
        if (!take_answer(window_.member(source), brief.code, data, carried)) refuse(source);
        return;
    }
    if (brief.kind > Kind::compare_swap) return control(source, brief);
    if (brief.bytes == 0 || brief.bytes > kBriefBytes || carried != carried_by(brief)) refuse(source);

    const auto from = static_cast<int64_t>(brief.address);
    int64_t to = 0;
    const bool good = !__builtin_add_overflow(from, int64_t{brief.bytes}, &to) && reaches(from, to);
    char old[kBriefBytes];
    if (good) change(source, brief, data, old);
    if (asks_back(brief.kind))
        answer_briefly(source, good ? MPI_SUCCESS : MPI_ERR_RMA_RANGE, old, good ? brief.bytes : 0);
    else if (!good)
        streams_[static_cast<size_t>(source)].error = MPI_ERR_RMA_RANGE;
    if (brief.number != 0) tell_flushed(source, brief.number);
}

// What an operation does to this process's memory; what was there into `old` where it is wanted.
void Target::change(int source, const Brief& brief, const char* data, char* old) {
    char* const at = reinterpret_cast<char*>(brief.address);
    MemberLine* const line = window_.self().line;
    Guard* const guard = line == nullptr ? nullptr : &line->guard;
    switch (brief.kind) {
        case Kind::brief_put:
            return copy_item(at, data, brief.bytes);
        case Kind::brief_get:
            return copy_item(old, at, brief.bytes);
        case Kind::compare_swap:
            return compare_swap(brief.bytes, at, data, data + brief.bytes, old, guard);
        default:
            break;
    }
    const Datatype* const element = element_for(brief);
    if (element == nullptr) refuse(source);
    const bool fetches = brief.kind == Kind::brief_get_accumulate;
    apply(op_of(brief), *element, at, data, fetches ? old : nullptr,
          static_cast<size_t>(brief.bytes / element->size), guard);
}

void Target::answer_briefly(int source, int error, const char* data, size_t bytes) {
    Parcel answer{{.kind = Kind::answer, .code = error}};
    std::memcpy(answer.data, data, bytes);
    send_parcel(window_, source, answer, bytes);
}

}  // namespace viaduct::mpi::rma
