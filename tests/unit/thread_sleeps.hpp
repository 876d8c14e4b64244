// SPDX-License-Identifier: BSD-2-Clause
// Whether a thread of this process has gone to sleep, by the counts of the kernel.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <string>

#include "tests/eventually.hpp"

namespace viaduct::tests {

// How often the thread has given up the processor to wait: a yield does not count, nor a wait for a processor.
inline long sleeps_so_far(pid_t thread) {
    std::ifstream status("/proc/self/task/" + std::to_string(thread) + "/status");
    for (std::string word; status >> word;)
        if (long count = 0; word == "voluntary_ctxt_switches:" && status >> count) return count;
    return -1;
}

// One thread marks itself, and another one waits until the marked thread has slept since then.
class SleepMark {
public:
    void set() {
        sleeps_ = sleeps_so_far(::gettid());
        thread_.store(::gettid());
    }
    bool has_slept() const {
        const pid_t thread = thread_.load();
        return thread != 0 && sleeps_so_far(thread) > sleeps_;
    }

private:
    long sleeps_ = 0;
    std::atomic<pid_t> thread_{0};
};

}  // namespace viaduct::tests
