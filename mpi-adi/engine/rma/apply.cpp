// SPDX-License-Identifier: BSD-2-Clause
// See apply.hpp.
#include "mpi-adi/engine/rma/apply.hpp"

#include <sched.h>
#include <unistd.h>

#include <cstring>

#include "mpi-adi/engine/p2p.hpp"
#include "mpi-adi/engine/rma/word.hpp"
#include "mpi-adi/engine/robust/state.hpp"

namespace viaduct::mpi::rma {
namespace {

template <typename Word>
void change_all(MPI_Op op, const Datatype& element, Word* target, const char* data, char* result, size_t n) {
    const OpLoop loop = is_one_step(op, element) ? nullptr : op_loop(op, element);
    for (size_t i = 0; i < n; i++) {
        const Word old =
            loop == nullptr ? change_at_once(op, target + i, data) : change_by(loop, target + i, data);
        if (data != nullptr) data += sizeof old;
        if (result != nullptr) std::memcpy(result + i * sizeof old, &old, sizeof old);
    }
}

// The loops expect their type's alignment: an element that lies elsewhere is changed in a copy that has it.
void loop_anywhere(OpLoop loop, const Datatype& element, const char* data, char* target, size_t n) {
    const auto alignment = static_cast<uintptr_t>(element.alignment);
    if ((reinterpret_cast<uintptr_t>(data) | reinterpret_cast<uintptr_t>(target)) % alignment == 0)
        return loop(data, target, n);
    constexpr size_t kWidest = 32;  // a complex of two quadruples, or a long double and its index
    alignas(16) char operand[kWidest];
    alignas(16) char made[kWidest];
    const auto width = static_cast<size_t>(element.extent());
    for (; n > 0; n--, data += width, target += width) {
        std::memcpy(operand, data, width);
        std::memcpy(made, target, width);
        loop(operand, made, 1);
        std::memcpy(target, made, width);
    }
}

void change_plainly(MPI_Op op, const Datatype& element, char* target, const char* data, char* result,
                    size_t n) {
    const size_t bytes = n * static_cast<size_t>(element.extent());
    if (result != nullptr) std::memcpy(result, target, bytes);
    if (op == MPI_NO_OP) return;
    if (op == MPI_REPLACE) {
        std::memmove(target, data, bytes);
        return;
    }
    loop_anywhere(op_loop(op, element), element, data, target, n);
}

}  // namespace

void Guard::acquire() {
    constexpr unsigned kTriesBetweenLooks = 1000;
    const int own = ::getpid();
    for (unsigned tries = 1;; tries++) {
        int free = 0;
        if (holder_.compare_exchange_weak(free, own, std::memory_order_acquire)) return;
        if (tries % kTriesBetweenLooks != 0) continue;
        if (free > 0 && has_ended_since(free, made_)) {
            if (!robust::goes_on())
                end_job(MPI_ERR_PROC_ABORTED, "process %d has ended inside an operation on a window", free);
            // What it has left there is of no use, as of all that it had begun; the call goes on.
            if (holder_.compare_exchange_strong(free, own, std::memory_order_acquire)) return;
        }
        ::sched_yield();
    }
}

void apply(MPI_Op op, const Datatype& element, char* target, const char* data, char* result, size_t n,
           Exclusion exclusion) {
    if (exclusion.words && is_word(element, target))
        return with_word(static_cast<size_t>(element.size), target,
                         [&](auto* word) { change_all(op, element, word, data, result, n); });
    const Guarded guarded(exclusion.guard);
    change_plainly(op, element, target, data, result, n);
}

void compare_swap(size_t width, char* target, const char* value, const char* compare, char* result,
                  Exclusion exclusion) {
    if (exclusion.words && is_word(width, target))
        return with_word(width, target, [&](auto* word) { swap_word(word, value, compare, result); });
    const Guarded guarded(exclusion.guard);
    char old[8];
    std::memcpy(old, target, width);
    if (std::memcmp(old, compare, width) == 0) std::memcpy(target, value, width);
    std::memcpy(result, old, width);
}

}  // namespace viaduct::mpi::rma
