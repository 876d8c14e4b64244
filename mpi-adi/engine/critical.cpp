// SPDX-License-Identifier: BSD-2-Clause
// A ticket lock whose waiters give way and then sleep; beside somebody who computes (company.hpp) they sleep at once.
#include "mpi-adi/engine/critical.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

#include "mpi-adi/engine/company.hpp"

namespace viaduct::mpi {
namespace {

// Turns are counted and never reset: whoever holds ticket == serving has the lock.
std::atomic<uint32_t> next_ticket{0};
std::atomic<uint32_t> serving{0};
std::atomic<uint32_t> asleep{0};
std::atomic<uint32_t> idle{0};  // threads that gave way and have nothing to do but look again
std::atomic<const void*> owner{nullptr};
uint32_t depth = 0;  // of the owner

const void* self() {
    static thread_local char here;
    return &here;
}

// The lock is held for microseconds as a rule; after that many looks the holder has probably lost its
// processor.
constexpr int kYields = 100;
// Where others have work for the lock all the time, an idle thread gets in line like them after so many looks.
constexpr int kIdleLooks = 64;

void wait_for_turn(uint32_t ticket) {
    for (int looks = 0;; looks++) {
        const uint32_t now = serving.load(std::memory_order_acquire);
        if (now == ticket) return;
        if (looks < kYields && !company.computes()) {
            company.give_way(1);
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

// Only when nobody has the lock or waits for it.
bool take_if_free() {
    uint32_t ticket = serving.load(std::memory_order_acquire);
    return next_ticket.compare_exchange_strong(ticket, ticket + 1, std::memory_order_acquire,
                                               std::memory_order_relaxed);
}

// Nobody wakes an idle thread: it looks again by itself, after about as long as a message takes on such a processor.
void sleep_a_while() {
    const timespec a_while{0, 50'000};
    ::nanosleep(&a_while, nullptr);
}

// Idle threads have no order among each other: a turn that is given to one of them in particular would wait until that
// one has a processor, and whoever has one can look for messages as well.
void take_when_idle() {
    idle.fetch_add(1, std::memory_order_relaxed);
    int looks = 0;
    do {
        if (company.computes())
            sleep_a_while();
        else
            company.give_way(1);
    } while (!take_if_free() && ++looks < kIdleLooks);
    idle.fetch_sub(1, std::memory_order_relaxed);
    if (looks == kIdleLooks) wait_for_turn(next_ticket.fetch_add(1, std::memory_order_relaxed));
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
    if (waiting <= 1 && idle.load(std::memory_order_relaxed) == 0) return false;
    const uint32_t mine = depth;
    owner.store(nullptr, std::memory_order_relaxed);
    pass_on();
    take_when_idle();
    owner.store(self(), std::memory_order_relaxed);
    depth = mine;
    return true;
}

void EngineLock::nap() {
    const uint32_t mine = depth;
    owner.store(nullptr, std::memory_order_relaxed);
    pass_on();
    sleep_a_while();
    wait_for_turn(next_ticket.fetch_add(1, std::memory_order_relaxed));
    owner.store(self(), std::memory_order_relaxed);
    depth = mine;
}

}  // namespace viaduct::mpi
