// SPDX-License-Identifier: BSD-2-Clause
// A ticket lock that spins, gives way and then sleeps.
#include "mpi-adi/engine/critical.hpp"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

namespace viaduct::mpi {
namespace {

// Turns are counted and never reset: whoever holds ticket == serving has the lock.
std::atomic<uint32_t> next_ticket{0};
std::atomic<uint32_t> serving{0};
std::atomic<uint32_t> asleep{0};
std::atomic<const void*> owner{nullptr};
uint32_t depth = 0;  // of the owner

const void* self() {
    static thread_local char here;
    return &here;
}

// The lock is held for microseconds as a rule; after that many looks the holder has probably lost its
// processor.
constexpr int kYields = 100;

void wait_for_turn(uint32_t ticket) {
    for (int looks = 0;; looks++) {
        const uint32_t now = serving.load(std::memory_order_acquire);
        if (now == ticket) return;
        if (looks < kYields) {
            ::sched_yield();
            continue;
        }
        // Sequentially consistent with the release: either it sees us asleep, or we see its new number.
        asleep.fetch_add(1, std::memory_order_seq_cst);
        const timespec at_most{0, 10'000'000};
        ::syscall(SYS_futex, &serving, FUTEX_WAIT_PRIVATE, now, &at_most, nullptr, 0);
        asleep.fetch_sub(1, std::memory_order_relaxed);
    }
}

void pass_on() {
    serving.fetch_add(1, std::memory_order_seq_cst);
    if (asleep.load(std::memory_order_seq_cst) != 0)
        ::syscall(SYS_futex, &serving, FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr, nullptr, 0);
}

}  // namespace

std::atomic<bool> EngineLock::enabled_{false};

void EngineLock::acquire() {
    if (owner.load(std::memory_order_relaxed) == self()) {
        depth++;
        return;
    }
    wait_for_turn(next_ticket.fetch_add(1, std::memory_order_relaxed));
    owner.store(self(), std::memory_order_relaxed);
    depth = 1;
}

void EngineLock::release() {
    if (--depth != 0) return;
    owner.store(nullptr, std::memory_order_relaxed);
    pass_on();
}

bool EngineLock::give_way() {
    if (!enabled()) return false;
    const uint32_t waiting =
        next_ticket.load(std::memory_order_relaxed) - serving.load(std::memory_order_relaxed);
    if (waiting <= 1) return false;
    const uint32_t mine = depth;
    owner.store(nullptr, std::memory_order_relaxed);
    pass_on();
    wait_for_turn(next_ticket.fetch_add(1, std::memory_order_relaxed));
    owner.store(self(), std::memory_order_relaxed);
    depth = mine;
    return true;
}

}  // namespace viaduct::mpi
