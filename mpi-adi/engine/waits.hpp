// SPDX-License-Identifier: BSD-2-Clause
// Waiting where several threads of a process may be in MPI (MPI_THREAD_MULTIPLE). One of them polls; the
// others sleep, each on a word of its own with the condition it waits for beside. A condition is about what
// the engine's lock guards, so the thread that releases the lock checks which of them hold and wakes just those.
// The thread that polls and finds nothing becomes the watcher, asleep until the modules have something; when it
// leaves, it wakes another in its place.
#pragma once

#include <atomic>
#include <cstdint>

#include "mpi-adi/engine/wait_page.hpp"

namespace viaduct::mpi {

// What a thread waits for. Asked with the lock held, by any thread.
struct Wait {
    bool (*holds)(void*);
    bool (*for_one_here)(void*);  // of that thread alone: see ProgressWait
    void (*describe)(void*, Awaited&);  // what it waits for, when that has become long
    void* argument;
};

// Until it holds. The lock is held, and let go meanwhile.
void wait_among_threads(const Wait& wait);

// For the progress thread, with the lock: moves messages on and sleeps at the modules, until a call of the
// program comes, it is over, or about as long as that.
constexpr int64_t kLongestProgressNs = 1'000'000'000;
void progress_between_calls(const std::atomic<bool>& over);

// A thread waits for what no module reports (a word of memory, a worker's end): no thread sleeps for long
// meanwhile.
class Unannounced {
public:
    Unannounced();
    ~Unannounced();
    Unannounced(const Unannounced&) = delete;
    Unannounced& operator=(const Unannounced&) = delete;
};

// For the lock: those asleep whose conditions hold, taken out of the list before it is let go, and woken
// after.
bool sleepers_are_there();
class Woken {
public:
    void gather();
    void wake();

private:
    static constexpr int kMost = 16;
    const std::atomic<uint32_t>* words_[kMost];
    int count_ = 0;
};

// What modules call around a sleep of theirs.
void let_go_for_sleep();
void take_back_after_sleep();

}  // namespace viaduct::mpi
