// SPDX-License-Identifier: BSD-2-Clause
// See apply.hpp.
#include "mpi-adi/engine/rma/apply.hpp"

#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "mpi-adi/engine/op.hpp"
#include "mpi-adi/engine/p2p.hpp"

namespace viaduct::mpi::rma {
namespace {

class Guarded {
public:
    explicit Guarded(Guard* guard) : guard_(guard) {
        if (guard_ != nullptr) guard_->acquire();
    }
    ~Guarded() {
        if (guard_ != nullptr) guard_->release();
    }
    Guarded(const Guarded&) = delete;
    Guarded& operator=(const Guarded&) = delete;

private:
    Guard* guard_;
};

bool is_atomic(size_t width, const char* target) {
    return (width == 1 || width == 2 || width == 4 || width == 8) &&
           reinterpret_cast<uintptr_t>(target) % width == 0;
}

// One element by any operator's loop: computed aside, and put there if the element has not changed meanwhile.
template <typename Word>
Word exchange_by(OpLoop loop, Word* target, const char* data) {
    std::atomic_ref<Word> cell(*target);
    Word old = cell.load(std::memory_order_relaxed);
    while (true) {
        alignas(8) char next[8];
        std::memcpy(next, &old, sizeof old);
        loop(data, next, 1);
        Word made;
        std::memcpy(&made, next, sizeof made);
        if (cell.compare_exchange_weak(old, made, std::memory_order_acq_rel)) return old;
    }
}

template <typename Word>
Word change(MPI_Op op, bool integer, OpLoop loop, Word* target, const char* data) {
    std::atomic_ref<Word> cell(*target);
    if (op == MPI_NO_OP) return cell.load(std::memory_order_acquire);
    alignas(8) Word operand;
    std::memcpy(&operand, data, sizeof operand);
    if (op == MPI_REPLACE) return cell.exchange(operand, std::memory_order_acq_rel);
    if (integer && op == MPI_SUM) return cell.fetch_add(operand, std::memory_order_acq_rel);
    if (op == MPI_BOR) return cell.fetch_or(operand, std::memory_order_acq_rel);
    if (op == MPI_BAND) return cell.fetch_and(operand, std::memory_order_acq_rel);
    if (op == MPI_BXOR) return cell.fetch_xor(operand, std::memory_order_acq_rel);
    // Data of a program lies where it likes; the loops expect their type's alignment.
    return exchange_by(loop, target, reinterpret_cast<const char*>(&operand));
}

template <typename Word>
void change_all(MPI_Op op, const Datatype& element, char* target, const char* data, char* result, size_t n) {
    const bool integer =
        element.basic == BasicClass::signed_integer || element.basic == BasicClass::unsigned_integer;
    const OpLoop loop = op_loop(op, element);
    for (size_t i = 0; i < n; i++) {
        const size_t at = i * sizeof(Word);
        const Word old = change(op, integer, loop, reinterpret_cast<Word*>(target + at), data + at);
        if (result != nullptr) std::memcpy(result + at, &old, sizeof old);
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
    op_loop(op, element)(data, target, n);
}

template <typename Word>
void swap_word(char* target, const char* value, const char* compare, char* result) {
    Word expected;
    Word desired;
    std::memcpy(&expected, compare, sizeof expected);
    std::memcpy(&desired, value, sizeof desired);
    std::atomic_ref<Word>(*reinterpret_cast<Word*>(target))
        .compare_exchange_strong(expected, desired, std::memory_order_acq_rel);
    std::memcpy(result, &expected, sizeof expected);
}

}  // namespace

void Guard::acquire() {
    constexpr unsigned kTriesBetweenLooks = 1000;
    const int own = ::getpid();
    for (unsigned tries = 1;; tries++) {
        int free = 0;
        if (holder_.compare_exchange_weak(free, own, std::memory_order_acquire)) return;
        if (tries % kTriesBetweenLooks != 0) continue;
        if (free > 0 && ::kill(free, 0) != 0 && errno == ESRCH)
            end_job(MPI_ERR_PROC_ABORTED, "process %d has ended inside an operation on a window", free);
        ::sched_yield();
    }
}

void apply(MPI_Op op, const Datatype& element, char* target, const char* data, char* result, size_t n,
           Guard* guard) {
    const auto width = static_cast<size_t>(element.extent());
    if (guard != nullptr && element.basic != BasicClass::pair && is_atomic(width, target)) {
        switch (width) {
            case 1:
                return change_all<uint8_t>(op, element, target, data, result, n);
            case 2:
                return change_all<uint16_t>(op, element, target, data, result, n);
            case 4:
                return change_all<uint32_t>(op, element, target, data, result, n);
            default:
                return change_all<uint64_t>(op, element, target, data, result, n);
        }
    }
    const Guarded guarded(guard);
    change_plainly(op, element, target, data, result, n);
}

void compare_swap(size_t width, char* target, const char* value, const char* compare, char* result,
                  Guard* guard) {
    if (guard != nullptr && is_atomic(width, target)) {
        switch (width) {
            case 1:
                return swap_word<uint8_t>(target, value, compare, result);
            case 2:
                return swap_word<uint16_t>(target, value, compare, result);
            case 4:
                return swap_word<uint32_t>(target, value, compare, result);
            default:
                return swap_word<uint64_t>(target, value, compare, result);
        }
    }
    const Guarded guarded(guard);
    char old[8];
    std::memcpy(old, target, width);
    if (std::memcmp(old, compare, width) == 0) std::memcpy(target, value, width);
    std::memcpy(result, old, width);
}

}  // namespace viaduct::mpi::rma
