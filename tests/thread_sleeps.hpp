// SPDX-License-Identifier: BSD-2-Clause
// Whether a thread has gone to sleep, by the figures of the kernel. A thread may be of any process.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

namespace viaduct::tests {

// How often the thread has left the processor so far, by a count of its status file.
inline long switches_so_far(pid_t thread, const char* count_name) {
    std::ifstream status("/proc/" + std::to_string(thread) + "/status");
    for (std::string word; status >> word;)
        if (long count = 0; word == count_name && status >> count) return count;
    return -1;
}

// To wait: a yield does not count, nor a wait for a processor.
inline long sleeps_so_far(pid_t thread) { return switches_so_far(thread, "voluntary_ctxt_switches:"); }

// Because the scheduler took the processor away, at any place.
inline long interruptions_so_far(pid_t thread) { return switches_so_far(thread, "nonvoluntary_ctxt_switches:"); }

// Whether the thread sleeps at this moment. One that has just been woken does not.
inline bool sleeps_now(pid_t thread) {
    std::ifstream stat("/proc/" + std::to_string(thread) + "/stat");
    std::string text;
    std::getline(stat, text, '\0');  // the name stands in brackets and may contain any character
    const size_t name_end = text.rfind(") ");
    return name_end != std::string::npos && text.size() > name_end + 2 && text[name_end + 2] == 'S';
}

// Whether there are threads of this name in this process and all of them sleep.
inline bool all_sleep(const std::string& name) {
    bool found = false;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
        std::string its_name;
        std::getline(std::ifstream(task.path() / "comm"), its_name);
        if (its_name != name) continue;
        found = true;
        if (!sleeps_now(std::stoi(task.path().filename()))) return false;
    }
    return found;
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

// A condition: the thread, of any process, has slept for kQuiet without a turn on a processor, or has gone to sleep
// kTurns times. A NIC whose port has no descriptor (memif) sleeps in short turns. A thread that spins, that yields or
// that waits for a processor does not meet the condition.
class Asleep {
public:
    explicit Asleep(pid_t thread) : thread_(thread) {}

    bool operator()() {
        const long sleeps = sleeps_so_far(thread_);
        const bool is_asleep = sleeps_now(thread_);
        if (first_ < 0) first_ = sleeps;
        if (is_asleep && sleeps - first_ >= kTurns) return true;
        const auto now = std::chrono::steady_clock::now();
        if (!is_asleep || sleeps != sleeps_) {
            sleeps_ = sleeps;
            since_ = now;
            return false;
        }
        return now - since_ >= kQuiet;
    }

private:
    static constexpr std::chrono::milliseconds kQuiet{5};
    static constexpr long kTurns = 200;

    pid_t thread_;
    long sleeps_ = -1, first_ = -1;
    std::chrono::steady_clock::time_point since_{};
};

}  // namespace viaduct::tests
