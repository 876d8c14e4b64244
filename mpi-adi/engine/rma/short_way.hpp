// SPDX-License-Identifier: BSD-2-Clause
// The short way of operations whose cost is all in getting there: items of one predefined type, the same at
// both ends and in one piece, in a window whose memory this process shares, and in an epoch that lets them
// begin. They go straight to memory, by the same steps as on the long way (origin.hpp), so that both may meet
// on one element. Each function says whether it has done the operation. It has not when anything at all is
// otherwise, or wrong: then nothing has happened, and the long way, which knows all cases and all errors,
// begins at the beginning.
#pragma once

#include "mpi-adi/engine/rma/apply.hpp"
#include "mpi-adi/engine/rma/window.hpp"
#include "mpi-adi/engine/rma/word.hpp"

namespace viaduct::mpi::rma {

// Where the items lie in the memory of a member: null when there is no short way to them. Else the operation
// is made.
inline char* short_way(Window& window, const Datatype& type, int64_t count, int rank, MPI_Aint displacement) {
    if (rank < 0 || rank >= window.group_size()) return nullptr;
    const Member& member = window.member(rank);
    int64_t bytes = 0;
    int64_t offset = 0;
    // A line stands before memory that is shared, whoever else is a member.
    if (member.line == nullptr || !type.builtin || !type.contiguous || !access_is_open(window, member) ||
        __builtin_mul_overflow(count, type.size, &bytes) || bytes <= 0 ||
        __builtin_mul_overflow(displacement, member.disp_unit, &offset) || offset < 0 ||
        offset > member.size - bytes)
        return nullptr;
    note_access(window);
    return member.direct + offset;
}

// One item as one load and store, where its length lets the compiler do so.
inline void copy_item(void* to, const void* from, size_t bytes) {
    switch (bytes) {
        case 4:
            std::memcpy(to, from, 4);
            break;
        case 8:
            std::memcpy(to, from, 8);
            break;
        default:
            std::memcpy(to, from, bytes);
    }
}

inline bool short_put(Window& window, const void* origin, int64_t count, const Datatype* type, int rank,
                      MPI_Aint displacement) {
    if (origin == nullptr || type == nullptr) return false;
    char* const at = short_way(window, *type, count, rank, displacement);
    if (at == nullptr) return false;
    copy_item(at, origin, static_cast<size_t>(count * type->size));
    return true;
}

inline bool short_get(Window& window, void* origin, int64_t count, const Datatype* type, int rank,
                      MPI_Aint displacement) {
    if (origin == nullptr || type == nullptr) return false;
    const char* const at = short_way(window, *type, count, rank, displacement);
    if (at == nullptr) return false;
    copy_item(origin, at, static_cast<size_t>(count * type->size));
    return true;
}

// Of any number of items; `result` gets the old values unless it is null. The operator may be anything.
inline bool short_change(Window& window, const void* origin, void* result, int64_t count,
                         const Datatype* type, int rank, MPI_Aint displacement, MPI_Op op) {
    if (type == nullptr) return false;
    const bool at_once = is_one_step(op, *type);
    if (!at_once && op_loop(op, *type) == nullptr) return false;
    char* const at = short_way(window, *type, count, rank, displacement);
    if (at == nullptr) return false;
    const auto* const data = static_cast<const char*>(origin);
    auto* const old = static_cast<char*>(result);
    if (at_once && count == 1 && is_word(*type, at))
        with_word(static_cast<size_t>(type->size), at, [&](auto* word) {
            const auto was = change_at_once(op, word, data);
            if (old != nullptr) std::memcpy(old, &was, sizeof was);
        });
    else
        apply(op, *type, at, data, old, static_cast<size_t>(count), &window.member(rank).line->guard);
    return true;
}

inline bool short_accumulate(Window& window, const void* origin, int64_t count, const Datatype* type,
                             int rank, MPI_Aint displacement, MPI_Op op) {
    return origin != nullptr && op != MPI_NO_OP &&
           short_change(window, origin, nullptr, count, type, rank, displacement, op);
}

inline bool short_fetch_and_op(Window& window, const void* origin, void* result, const Datatype* type,
                               int rank, MPI_Aint displacement, MPI_Op op) {
    return result != nullptr && (origin != nullptr || op == MPI_NO_OP) &&
           short_change(window, origin, result, 1, type, rank, displacement, op);
}

// The caller has looked whether items of this type may be compared.
inline bool short_compare_and_swap(Window& window, const void* origin, const void* compare, void* result,
                                   const Datatype& type, int rank, MPI_Aint displacement) {
    char* const at = short_way(window, type, 1, rank, displacement);
    if (at == nullptr) return false;
    const auto width = static_cast<size_t>(type.size);
    const auto* const value = static_cast<const char*>(origin);
    const auto* const expected = static_cast<const char*>(compare);
    auto* const old = static_cast<char*>(result);
    if (is_word(width, at))
        with_word(width, at, [&](auto* word) { swap_word(word, value, expected, old); });
    else
        compare_swap(width, at, value, expected, old, &window.member(rank).line->guard);
    return true;
}

}  // namespace viaduct::mpi::rma
