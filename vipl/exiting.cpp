// SPDX-License-Identifier: BSD-2-Clause
// How a thread that calls exit() is told from one that only ends. Functions of atexit and on_exit run in reverse order
// of their registration, so that of this library may run after slow ones of the program. But before all of them, exit()
// destroys the thread-local objects of the thread that calls it. The end of a thread destroys them, too, and then runs
// the destructors of pthread keys, which exit() never does. Between the two, the thread is undecided: other
// thread-local objects and other keys may take their time there.
#include "vipl/exiting.hpp"

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>

namespace viaduct::vipl {
namespace {

constexpr int kSlots = 64;

std::atomic<bool> handlers_reached{false};

// Set for threads whose thread-local objects are destroyed and that may be about to end.
std::atomic<bool> undecided[kSlots];

// It has no destructor, so that the destructor of the key still finds it.
thread_local int own_slot = -1;

void note_exit(int, void*) { handlers_reached.store(true); }

void note_thread_end(void*) {
    if (own_slot >= 0) undecided[own_slot].store(false);
    own_slot = -1;
}

// Made when the library is loaded: keys are destroyed in the order of their numbers, so a low number makes the time
// short in which a thread is undecided.
pthread_key_t end_key;
const bool have_key = ::pthread_key_create(&end_key, note_thread_end) == 0;

struct Sentinel {
    Sentinel() {}
    ~Sentinel() {
        if (!watched) return;
        for (int slot = 0; slot < kSlots; ++slot) {
            if (undecided[slot].exchange(true)) continue;
            own_slot = slot;
            return;
        }
    }
    // Only with a value for the key: without one, a thread that only ends would stay undecided for ever.
    bool watched = false;
};

thread_local Sentinel sentinel;

// The C library ends the program where it has no memory to note the destructor of a thread-local object: the sentinel
// is not touched before there is some.
bool has_room_for_destructor() {
    constexpr size_t kMuchMore = 4096;  // given back to where small pieces are taken from
    void* room = std::malloc(kMuchMore);
    __asm__ volatile("" : "+r"(room));  // or the compiler leaves out both calls
    std::free(room);
    return room != nullptr;
}

thread_local bool is_noted = false;

}  // namespace

bool watch_exit() { return ::on_exit(note_exit, nullptr) == 0; }

void watch_this_thread() {
    if (!is_noted) {
        if (!has_room_for_destructor()) return;  // at the next call
        is_noted = true;
    }
    if (!sentinel.watched) sentinel.watched = have_key && ::pthread_setspecific(end_key, &sentinel) == 0;
}

ProcessEnd process_end() {
    if (handlers_reached.load()) return ProcessEnd::certain;
    for (const std::atomic<bool>& slot : undecided)
        if (slot.load()) return ProcessEnd::undecided;
    return ProcessEnd::none;
}

void clear_ending_threads() {
    for (std::atomic<bool>& slot : undecided) slot.store(false);
    own_slot = -1;
}

}  // namespace viaduct::vipl
