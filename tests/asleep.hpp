// SPDX-License-Identifier: BSD-2-Clause
// The sign that a thread has gone to sleep in its call, by the figures of the kernel. A test that needs a blocked
// thread waits for it: eventually("the receiver sleeps", Asleep(thread)).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <fstream>
#include <string>

namespace viaduct::tests {

// A condition: the thread, of any process, has slept for kQuiet without a turn on a processor. A thread that spins,
// that waits for a processor or that sleeps in short turns does not meet it.
class Asleep {
public:
    explicit Asleep(pid_t thread) : status_("/proc/" + std::to_string(thread) + "/status") {}

    bool operator()() {
        std::ifstream status(status_);
        std::string state, sleeps;
        for (std::string word; status >> word;) {
            if (word == "State:") status >> state;
            if (word == "voluntary_ctxt_switches:") status >> sleeps;
        }
        const auto now = std::chrono::steady_clock::now();
        if (state != "S" || sleeps != sleeps_) {
            sleeps_ = sleeps;
            since_ = now;
            return false;
        }
        return now - since_ >= kQuiet;
    }

private:
    static constexpr std::chrono::milliseconds kQuiet{5};

    std::string status_, sleeps_;
    std::chrono::steady_clock::time_point since_{};
};

}  // namespace viaduct::tests
