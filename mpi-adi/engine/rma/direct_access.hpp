// SPDX-License-Identifier: BSD-2-Clause
// Direct access: the fast path of one-sided operations with items of one predefined type, the same at both ends and
// in one piece, in a window whose memory this process shares, and in an epoch that lets them begin. They access the
// memory by the same steps as the slow path (origin.hpp), so that both may meet on one element. Each function says
// whether it has done the operation. When a condition does not hold it has changed nothing, and the caller takes the
// slow path, which handles all cases and all errors.
#pragma once

#include "mpi-adi/engine/critical.hpp"
#include "mpi-adi/engine/engine.hpp"
#include "mpi-adi/engine/rma/apply.hpp"
#include "mpi-adi/engine/rma/window.hpp"
#include "mpi-adi/engine/rma/word.hpp"

namespace viaduct::mpi::rma {

// The bytes of an item of one basic type; 0 of any other.
inline int64_t item_bytes(MPI_Datatype type) {
    return basic_class(type) != BasicClass::none ? basic_handle_size(type) : 0;
}

// Where `count` items of so many bytes lie in the memory of a member: null when there is no direct access to
// them. Else the operation is counted.
inline char* direct_address(Window& window, int64_t item, int64_t count, int rank, MPI_Aint displacement) {
    if (static_cast<unsigned>(rank) >= window.group) return nullptr;
    const Member& member = window.member(rank);
    int64_t bytes = 0;
    int64_t offset = 0;
    if (!member.shared || !access_is_open(window, member) || __builtin_mul_overflow(count, item, &bytes) ||
        bytes <= 0 || __builtin_mul_overflow(displacement, member.disp_unit, &offset) || offset < 0 ||
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

[[nodiscard]] inline bool short_put(Window& window, const void* origin, int64_t count, MPI_Datatype type, int rank,
                                    MPI_Aint displacement) {
    const int64_t item = item_bytes(type);
    if (origin == nullptr) return false;
    char* const at = direct_address(window, item, count, rank, displacement);
    if (at == nullptr) return false;
    copy_item(at, origin, static_cast<size_t>(count * item));
    return true;
}

[[nodiscard]] inline bool short_get(Window& window, void* origin, int64_t count, MPI_Datatype type, int rank,
                                    MPI_Aint displacement) {
    const int64_t item = item_bytes(type);
    if (origin == nullptr) return false;
    const char* const at = direct_address(window, item, count, rank, displacement);
    if (at == nullptr) return false;
    copy_item(origin, at, static_cast<size_t>(count * item));
    return true;
}

// One item, by a single step of the processor; `result` gets the old value unless it is null.
[[gnu::always_inline]] inline bool short_step(Window& window, const void* origin, void* result, MPI_Datatype type,
                                              int rank, MPI_Aint displacement, MPI_Op op) {
    const BasicClass basic = basic_class(type);
    const auto width = static_cast<size_t>(basic_handle_size(type));
    if (basic == BasicClass::none || !is_one_step(op, basic, type)) return false;
    char* const at = direct_address(window, static_cast<int64_t>(width), 1, rank, displacement);
    if (at == nullptr || !is_word(width, at)) return false;
    with_word(
        width, at, [&](auto* word) __attribute__((always_inline)) {
            const auto was = change_at_once(op, word, static_cast<const char*>(origin));
            if (result != nullptr) std::memcpy(result, &was, sizeof was);
        });
    if (op != MPI_NO_OP) note_locked_step(window);
    return true;
}

// Any number of items, by any operator.
[[nodiscard]] inline bool short_change(Window& window, const void* origin, void* result, int64_t count,
                                       MPI_Datatype handle, int rank, MPI_Aint displacement, MPI_Op op) {
    const Datatype* const type = type_of(handle);
    if (type == nullptr || !type->builtin || !type->contiguous) return false;
    if (!is_one_step(op, *type) && op_loop(op, *type) == nullptr) return false;
    char* const at = direct_address(window, type->size, count, rank, displacement);
    if (at == nullptr) return false;
    apply(op, *type, at, static_cast<const char*>(origin), static_cast<char*>(result), static_cast<size_t>(count),
          window.member(rank).exclusion());
    return true;
}

// Whether items of this type may be compared.
inline bool is_swappable(MPI_Datatype type) {
    switch (basic_class(type)) {
        case BasicClass::signed_integer:
        case BasicClass::unsigned_integer:
        case BasicClass::logical:
        case BasicClass::byte:
        case BasicClass::character:
            return true;
        default:
            return false;
    }
}

[[nodiscard]] inline bool short_compare_and_swap(Window& window, const void* origin, const void* compare, void* result,
                                                 MPI_Datatype type, int rank, MPI_Aint displacement) {
    if (origin == nullptr || compare == nullptr || result == nullptr || !is_swappable(type)) return false;
    const int64_t item = basic_handle_size(type);
    char* const at = direct_address(window, item, 1, rank, displacement);
    if (at == nullptr) return false;
    const auto width = static_cast<size_t>(item);
    const auto* const value = static_cast<const char*>(origin);
    const auto* const expected = static_cast<const char*>(compare);
    auto* const old = static_cast<char*>(result);
    if (is_word(width, at)) {
        with_word(width, at, [&](auto* word) { swap_word(word, value, expected, old); });
        note_locked_step(window);
    } else {
        compare_swap(width, at, value, expected, old, window.member(rank).exclusion());
    }
    return true;
}

// A flush where all members share memory, of any kind, of one member or, rank < 0, of all.
[[nodiscard]] inline bool short_flush(Window& window, int rank) {
    if (!window.all_direct || !is_passive(window, rank)) return false;
    settle(window);
    if (is_time_to_look(window)) [[unlikely]]
        progress();
    if (engine.crowded || EngineLock::enabled()) [[unlikely]]
        window.wait.look_again();
    return true;
}

}  // namespace viaduct::mpi::rma
