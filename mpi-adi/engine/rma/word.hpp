// SPDX-License-Identifier: BSD-2-Clause
// The atomic steps on one element of shared memory, a word of 1, 2, 4 or 8 bytes at its alignment. All ways
// to such an element end here, so that operations of any two processes on it, by whatever way, are atomic to
// each other.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "mpi-adi/engine/op.hpp"

namespace viaduct::mpi::rma {

inline bool is_word(size_t width, const char* at) {
    return (width == 1 || width == 2 || width == 4 || width == 8) &&
           (reinterpret_cast<uintptr_t>(at) & (width - 1)) == 0;
}
// The same element is a word for all processes, or for none: a pair never is one.
inline bool is_word(const Datatype& element, const char* at) {
    return element.basic != BasicClass::pair && is_word(static_cast<size_t>(element.size), at);
}

// Calls visit with the address as that of an unsigned integer of `width` bytes.
template <typename Visit>
[[gnu::always_inline]] inline void with_word(size_t width, char* at, Visit&& visit) {
    switch (width) {
        case 1:
            return visit(reinterpret_cast<uint8_t*>(at));
        case 2:
            return visit(reinterpret_cast<uint16_t*>(at));
        case 4:
            return visit(reinterpret_cast<uint32_t*>(at));
        default:
            return visit(reinterpret_cast<uint64_t*>(at));
    }
}

// Whether the operator is defined for these elements, and one instruction of the processor on a word.
inline bool is_one_step(MPI_Op op, BasicClass basic, MPI_Datatype handle) {
    const bool integer = basic == BasicClass::signed_integer || basic == BasicClass::unsigned_integer;
    switch (op) {
        case MPI_REPLACE:
        case MPI_NO_OP:
            return true;
        case MPI_SUM:
            return integer;
        case MPI_BOR:
        case MPI_BAND:
        case MPI_BXOR:
            return integer || handle == MPI_BYTE;
        default:
            return false;
    }
}
inline bool is_one_step(MPI_Op op, const Datatype& element) {
    return is_one_step(op, element.basic, element.handle);
}

// By an operator of one step; the old value. For MPI_NO_OP data is not read.
template <typename Word>
[[gnu::always_inline]] inline Word change_at_once(MPI_Op op, Word* target, const char* data) {
    std::atomic_ref<Word> cell(*target);
    if (op == MPI_NO_OP) return cell.load(std::memory_order_acquire);
    Word operand;
    std::memcpy(&operand, data, sizeof operand);
    switch (op) {
        case MPI_SUM:
            return cell.fetch_add(operand, std::memory_order_acq_rel);
        case MPI_BOR:
            return cell.fetch_or(operand, std::memory_order_acq_rel);
        case MPI_BAND:
            return cell.fetch_and(operand, std::memory_order_acq_rel);
        case MPI_BXOR:
            return cell.fetch_xor(operand, std::memory_order_acq_rel);
        default:
            return cell.exchange(operand, std::memory_order_acq_rel);
    }
}

// By any operator's loop: computed aside, and put there if the element has not changed meanwhile; the old
// value.
template <typename Word>
Word change_by(OpLoop loop, Word* target, const char* data) {
    std::atomic_ref<Word> cell(*target);
    Word old = cell.load(std::memory_order_relaxed);
    // Data of a program lies where it likes; the loops expect their type's alignment.
    alignas(8) char operand[sizeof(Word)];
    std::memcpy(operand, data, sizeof operand);
    while (true) {
        alignas(8) char next[sizeof(Word)];
        std::memcpy(next, &old, sizeof old);
        loop(operand, next, 1);
        Word made;
        std::memcpy(&made, next, sizeof made);
        if (cell.compare_exchange_weak(old, made, std::memory_order_acq_rel)) return old;
    }
}

// *result = *target; if that equals *compare, *target = *value.
template <typename Word>
void swap_word(Word* target, const char* value, const char* compare, char* result) {
    Word expected;
    Word desired;
    std::memcpy(&expected, compare, sizeof expected);
    std::memcpy(&desired, value, sizeof desired);
    std::atomic_ref<Word>(*target).compare_exchange_strong(expected, desired, std::memory_order_acq_rel);
    std::memcpy(result, &expected, sizeof expected);
}

}  // namespace viaduct::mpi::rma
