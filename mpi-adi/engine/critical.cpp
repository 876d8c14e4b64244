// SPDX-License-Identifier: BSD-2-Clause
// A lock on a futex. See critical.hpp.
#include "mpi-adi/engine/critical.hpp"

#include <sched.h>

#include <climits>
#include <ctime>

#include "core/sync/futex.hpp"
#include "mpi-adi/engine/progress_thread.hpp"
#include "mpi-adi/engine/progress_wait.hpp"
#include "mpi-adi/engine/waits.hpp"

namespace viaduct::mpi {
namespace {

constexpr uint32_t kFree = 0, kHeld = 1,
                   kAwaited = 2;  // awaited: held, and a thread may sleep until it is not
std::atomic<uint32_t> word{kFree};
std::atomic<uint32_t> wanting{0};   // threads that found it held
std::atomic<uint32_t> starving{0};  // of them, those that have waited for long
std::atomic<uint32_t> turns{0};     // counts how often one of them got it
std::atomic<uint32_t> yielding{0};    // threads that wait for another thread to have a turn
std::atomic<const void*> owner{nullptr};
uint32_t depth = 0;  // of the owner

constexpr int64_t kLong = 1'000'000;
constexpr int64_t kBesideStarving = 50'000;

const void* self() {
    static thread_local char here;
    return &here;
}

int64_t now_ns() {
    timespec now = {};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void sleep_ns(int64_t nanoseconds) {
    const timespec time{static_cast<time_t>(nanoseconds / 1'000'000'000),
                        static_cast<long>(nanoseconds % 1'000'000'000)};
    ::nanosleep(&time, nullptr);
}

void wait_for_lock() {
    wanting.fetch_add(1, std::memory_order_relaxed);
    const int64_t since = now_ns();
    bool starves = false;
    for (;;) {
        if (starves || starving.load(std::memory_order_relaxed) == 0) {
            if (word.exchange(kAwaited, std::memory_order_acquire) == kFree) break;
            futex_wait(word, kAwaited, kLong, false);
        } else {
            sleep_ns(kBesideStarving);
        }
        if (!starves && now_ns() - since > kLong) {
            starves = true;
            starving.fetch_add(1, std::memory_order_relaxed);
        }
    }
    if (starves) starving.fetch_sub(1, std::memory_order_relaxed);
    wanting.fetch_sub(1, std::memory_order_relaxed);
    turns.fetch_add(1, std::memory_order_seq_cst);
    if (yielding.load(std::memory_order_seq_cst) != 0) futex_wake(turns, INT_MAX, false);
}

void lock() {
    uint32_t expected = kFree;
    if (starving.load(std::memory_order_relaxed) != 0 ||
        !word.compare_exchange_strong(expected, kHeld, std::memory_order_acquire, std::memory_order_relaxed))
        wait_for_lock();
}

void unlock() {
    Woken woken;
    if (sleepers_are_there()) [[unlikely]]
        woken.gather();
    owner.store(nullptr, std::memory_order_relaxed);
    if (word.exchange(kFree, std::memory_order_release) == kAwaited)
        futex_wake(word, starving.load(std::memory_order_relaxed) != 0 ? INT_MAX : 1, false);
    woken.wake();
}

}  // namespace

std::atomic<bool> EngineLock::enabled_{false};
std::atomic<uint32_t> EngineLock::calls_{0};

bool EngineLock::is_mine() { return owner.load(std::memory_order_relaxed) == self(); }

void EngineLock::acquire() {
    if (is_mine()) {
        depth++;
        return;
    }
    take_back(1);
    calls_.store(calls() + 1, std::memory_order_relaxed);
}

bool EngineLock::acquire_within(int64_t nanoseconds) {
    if (is_mine()) return false;
    const int64_t end = now_ns() + nanoseconds;
    for (uint32_t expected = kFree; !word.compare_exchange_strong(expected, kHeld, std::memory_order_acquire,
                                                                  std::memory_order_relaxed);
         expected = kFree) {
        if (now_ns() > end) return false;
        sleep_ns(kBesideStarving);
    }
    owner.store(self(), std::memory_order_relaxed);
    depth = 1;
    return true;
}

void EngineLock::release() {
    if (--depth != 0) return;
    const bool leaves_work = progress_thread_is_wanted();
    unlock();
    if (leaves_work) wake_progress_thread();
}

uint32_t EngineLock::let_go() {
    const uint32_t mine = depth;
    unlock();
    return mine;
}

void EngineLock::take_back(uint32_t mine) {
    lock();
    owner.store(self(), std::memory_order_relaxed);
    depth = mine;
}

bool EngineLock::give_turn() {
    if (!enabled() || wanting.load(std::memory_order_relaxed) == 0) return false;
    const uint32_t seen = turns.load(std::memory_order_relaxed);
    yielding.fetch_add(1, std::memory_order_seq_cst);
    const uint32_t mine = let_go();
    futex_wait(turns, seen, kLong, false);
    yielding.fetch_sub(1, std::memory_order_relaxed);
    take_back(mine);
    return true;
}

void EngineLock::yield() {
    const uint32_t mine = let_go();
    cpu_contention.give_way(kLongYields);
    take_back(mine);
}

void EngineLock::nap(int64_t nanoseconds) {
    const uint32_t mine = let_go();
    sleep_ns(nanoseconds);
    take_back(mine);
}

}  // namespace viaduct::mpi
