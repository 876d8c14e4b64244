// SPDX-License-Identifier: BSD-2-Clause
// The sign that a thread has gone to sleep in its call, by the figures of the kernel. A test that needs a blocked
// thread waits for it: eventually("the receiver sleeps", Asleep(thread)).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <fstream>
#include <string>

namespace viaduct::tests {

// A condition: the thread, of any process, has slept for kQuiet without a turn on a processor, or has gone to sleep
// kTurns times. A NIC whose port has no descriptor (memif) sleeps in short turns. A thread that spins, that yields or
// that waits for a processor does not meet the condition.
class Asleep {
public:
    explicit Asleep(pid_t thread) : status_("/proc/" + std::to_string(thread) + "/status") {}

    bool operator()() {
        std::ifstream status(status_);
        std::string state;
        long sleeps = -1;
        for (std::string word; status >> word;) {
            if (word == "State:") status >> state;
            if (word == "voluntary_ctxt_switches:") status >> sleeps;
        }
        if (first_ < 0) first_ = sleeps;
        if (state == "S" && sleeps - first_ >= kTurns) return true;
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
    static constexpr long kTurns = 200;

    std::string status_;
    long sleeps_ = -1, first_ = -1;
    std::chrono::steady_clock::time_point since_{};
};

}  // namespace viaduct::tests
