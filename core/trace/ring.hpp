// SPDX-License-Identifier: BSD-2-Clause
// Adds events to the record of this process, while there is one. Any thread, also in a signal handler; no lock.
// Recording begins and ends on one thread at a time.
#pragma once

#include <time.h>

#include "core/trace/events.hpp"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace viaduct::trace {

inline uint64_t ticks() {
#if defined(__x86_64__)
    return __rdtsc();
#else
    timespec t{};
    ::clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
#endif
}

// Never changes, nor do its addresses become invalid: a thread may be stopped with it for as long as it likes.
struct Ring {
    Header* header = nullptr;
    Event* events = nullptr;
    uint64_t mask = 0;
};

extern std::atomic<const Ring*> ring;  // null: nothing is recorded
extern thread_local uint32_t own_thread;

inline bool on() { return ring.load(std::memory_order_relaxed) != nullptr; }

// Once, while the program has no other threads that change the environment: what begin() cannot read later.
void look_at_environment();
// In a file of its own, where the environment asks for that (viptrace record).
void begin_as_told();
// In that memory, for which another process answers: it must be sealed, so that it stays there. False: it is not, or
// this process is recorded already, which the memory is told.
bool begin(int fd);
// No event is begun after this. Some threads may be inside add() until free_memory() makes them write into nothing.
void end();
void free_memory();
// Its parent's memory is not in the child.
void reset_after_fork();

// Slow: the first event of a thread.
uint32_t number_thread();
// How the clock of ticks goes: at the first events often, then after every so many.
void note_moment(const Ring&);
inline constexpr uint64_t kBetweenMoments = 1 << 12;

// A thread that is stopped here for a whole turn of the ring leaves one event of mixed parts. `at` 0: now.
inline void add_at(uint64_t at, What what, Phase phase, const void* object, uint64_t value, uint32_t result = 0) {
    const Ring* r = ring.load(std::memory_order_acquire);
    if (r == nullptr) [[unlikely]]
        return;
    if (own_thread == 0) [[unlikely]]
        own_thread = number_thread();
    const uint64_t number = r->header->written.fetch_add(1, std::memory_order_relaxed);
    Event& e = r->events[number & r->mask];
    e.at.store(0, std::memory_order_relaxed);
    e.what = what;
    e.phase = phase;
    e.result = static_cast<uint8_t>(result);
    e.thread = own_thread;
    e.object = reinterpret_cast<uintptr_t>(object);
    e.value = value;
    e.at.store(at != 0 ? at : ticks(), std::memory_order_release);
    if (number % kBetweenMoments == 0 || (number & (number - 1)) == 0) [[unlikely]]
        note_moment(*r);
}

inline void add(What what, Phase phase, const void* object, uint64_t value, uint32_t result = 0) {
    add_at(0, what, phase, object, value, result);
}

}  // namespace viaduct::trace
