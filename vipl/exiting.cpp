// SPDX-License-Identifier: BSD-2-Clause
// atexit functions run in reverse order of their registration: ours may come after slow ones of the program.
// But before all of them, exit() destroys the thread-local objects of the thread that calls it. So does a
// thread that merely ends; that one goes on to run the destructors of pthread keys, which exit() never does.
// Between the two nothing can be known: other thread-local objects and other keys may take their time there.
#include "vipl/exiting.hpp"

#include <pthread.h>

#include <atomic>
#include <cstdlib>

#include "core/clock/clock.hpp"

namespace viaduct::vipl {
namespace {

constexpr int64_t kLongestDoubt = 10'000'000'000;  // a thread takes no longer to end: it is inside exit()
constexpr int kSlots = 64;

std::atomic<bool> handlers_reached{false};

// Threads whose thread-local objects are gone and that may yet turn out to end: since when. 0: a free slot.
std::atomic<int64_t> in_doubt_since[kSlots];

// Without a destructor, so that the key's still finds it.
thread_local int own_slot = -1;

void note_exit() { handlers_reached.store(true); }

void note_thread_end(void*) {
    if (own_slot >= 0) in_doubt_since[own_slot].store(0);
    own_slot = -1;
}

// Made when the library is loaded: keys are destroyed in the order of their numbers, and the lower ours is,
// the shorter is the doubt.
pthread_key_t end_key;
const bool have_key = ::pthread_key_create(&end_key, note_thread_end) == 0;

struct Sentinel {
    Sentinel() {}
    ~Sentinel() {
        if (!watched) return;
        for (int slot = 0; slot < kSlots; ++slot) {
            int64_t free = 0;
            if (!in_doubt_since[slot].compare_exchange_strong(free, now_ns())) continue;
            own_slot = slot;
            return;
        }
    }
    // Only with a value for the key: a thread that could not say that it merely ends must raise no doubt.
    bool watched = false;
};

thread_local Sentinel sentinel;

}  // namespace

bool watch_exit() { return std::atexit(note_exit) == 0; }

void watch_this_thread() {
    if (!sentinel.watched) sentinel.watched = have_key && ::pthread_setspecific(end_key, &sentinel) == 0;
}

ProcessEnd process_end() {
    if (handlers_reached.load()) return ProcessEnd::certain;
    const int64_t now = now_ns();
    ProcessEnd answer = ProcessEnd::none;
    for (const std::atomic<int64_t>& slot : in_doubt_since) {
        const int64_t since = slot.load();
        if (since == 0) continue;
        if (now - since >= kLongestDoubt) return ProcessEnd::certain;
        answer = ProcessEnd::undecided;
    }
    return answer;
}

void forget_ending_threads() {
    for (std::atomic<int64_t>& slot : in_doubt_since) slot.store(0);
}

}  // namespace viaduct::vipl
