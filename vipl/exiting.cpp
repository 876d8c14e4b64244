// SPDX-License-Identifier: BSD-2-Clause
// atexit functions run in reverse order of their registration: ours may come after slow ones of the program.
// But before all of them, exit() destroys the thread-local objects of the thread that calls it. So does a
// thread that merely ends; that one goes on to run the destructors of pthread keys, which exit() never does.
// Between the two nothing can be known: other thread-local objects and other keys may take their time there.
#include "vipl/exiting.hpp"

#include <pthread.h>

#include <atomic>
#include <cstdlib>

namespace viaduct::vipl {
namespace {

constexpr int kSlots = 64;

std::atomic<bool> handlers_reached{false};

// Set for threads whose thread-local objects are destroyed and that may be about to end.
std::atomic<bool> in_doubt[kSlots];

// Without a destructor, so that the key's still finds it.
thread_local int own_slot = -1;

void note_exit() { handlers_reached.store(true); }

void note_thread_end(void*) {
    if (own_slot >= 0) in_doubt[own_slot].store(false);
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
            if (in_doubt[slot].exchange(true)) continue;
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
    for (const std::atomic<bool>& slot : in_doubt)
        if (slot.load()) return ProcessEnd::undecided;
    return ProcessEnd::none;
}

void forget_ending_threads() {
    for (std::atomic<bool>& slot : in_doubt) slot.store(false);
    own_slot = -1;
}

}  // namespace viaduct::vipl
