// SPDX-License-Identifier: BSD-2-Clause
// The way in which a C++ test waits: eventually(what, condition) checks the condition again and again until it holds.
// The limit counts running time: wall time without the time in which the waited-for processes and their children were
// ready to run and had no processor. A loaded machine therefore makes a test slow and not red. tests/eventually.py and
// tests/eventually.h are the same for Python and C.
#pragma once

#include <dirent.h>
#include <sched.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace testing {
class AssertionResult;
}

namespace viaduct::tests {

// Running time after which a test gives up. It is far above what any condition takes, and there is one for all tests.
inline constexpr std::chrono::milliseconds kEventuallyLimit{10'000};

// A wait ends after this many limits of wall time even if the processes never get a processor.
inline constexpr int kHardEnd = 20;

// What eventually() reads from the system. Its own test has another one.
struct SystemReaders {
    int64_t wall_ns() const {
        timespec t{};
        ::clock_gettime(CLOCK_MONOTONIC, &t);
        return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
    }
    // For each process: time that its threads and the threads of all processes below it have waited in a run queue,
    // together; none if the kernel does not say.
    std::vector<std::optional<int64_t>> queued_ns(const std::vector<pid_t>& pids) const {
        const bool is_alone = pids.size() == 1 && pids.front() == ::getpid() && !has_children();
        const Children children = is_alone ? Children() : all_children();
        std::vector<std::optional<int64_t>> all;
        for (const pid_t pid : pids) all.push_back(queued_ns_of(family(pid, children)));
        return all;
    }
    // The children of each process, by the parent numbers of all processes. Not every kernel has the file `children` of
    // a thread.
    using Children = std::multimap<pid_t, pid_t>;
    static Children all_children() {
        Children children;
        for (const pid_t any : numbers_in("/proc"))
            if (const pid_t parent = parent_of(any); parent != 0) children.emplace(parent, any);
        return children;
    }
    // A process and all processes below it.
    static std::vector<pid_t> family(pid_t pid, const Children& children) {
        std::vector<pid_t> members{pid};
        for (size_t i = 0; i < members.size(); ++i) {
            const auto [begin, end] = children.equal_range(members[i]);
            for (auto child = begin; child != end; ++child) members.push_back(child->second);
        }
        return members;
    }
    // Time in which some task of the system had no processor; none if the kernel does not say.
    std::optional<int64_t> stalled_ns() const {
        long long us = 0;
        if (scan("/proc/pressure/cpu", "some avg10=%*f avg60=%*f avg300=%*f total=%lld", &us) != 1) return std::nullopt;
        return us * 1000;
    }
    // The first waits are short, for conditions that need a few turns of other threads only.
    void pause(int turn) const {
        if (turn < 50) {
            ::sched_yield();
        } else {
            std::this_thread::sleep_for(std::chrono::microseconds(turn < 250 ? 200 : 2000));
        }
    }

private:
    static std::optional<int64_t> queued_ns_of(const std::vector<pid_t>& processes) {
        std::optional<int64_t> sum;
        for (const pid_t process : processes) {
            const std::string tasks = "/proc/" + std::to_string(process) + "/task";
            for (const pid_t thread : numbers_in(tasks)) {
                long long ran = 0, queued = 0, times = 0;  // all three are 0 where the kernel counts none
                if (scan(tasks + "/" + std::to_string(thread) + "/schedstat", "%lld %lld %lld", &ran, &queued,
                         &times) == 3 &&
                    times > 0)
                    sum = sum.value_or(0) + queued;
            }
        }
        return sum;
    }
    static bool has_children() {
        siginfo_t info;
        return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0;
    }
    // 0 where there is none.
    static pid_t parent_of(pid_t pid) {
        std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
        std::string text;
        std::getline(file, text, '\0');  // the name of a program stands in brackets and may contain any character
        const size_t name_end = text.rfind(')');
        pid_t parent = 0;
        return name_end != std::string::npos && std::sscanf(text.c_str() + name_end, ") %*c %d", &parent) == 1 ? parent
                                                                                                               : 0;
    }
    static std::vector<pid_t> numbers_in(const std::string& path) {
        std::vector<pid_t> found;
        DIR* folder = ::opendir(path.c_str());
        if (folder == nullptr) return found;
        while (const dirent* entry = ::readdir(folder))
            if (const pid_t number = std::atoi(entry->d_name); number > 0) found.push_back(number);
        ::closedir(folder);
        return found;
    }
    template <typename... To>
    static int scan(const std::string& path, const char* format, To*... to) {
        std::FILE* file = std::fopen(path.c_str(), "re");
        if (file == nullptr) return 0;
        const int found = std::fscanf(file, format, to...);
        std::fclose(file);
        return found;
    }
};

// Running time of some processes since the object was made. Wall time and run-queue wait are nanoseconds.
template <typename Readers = SystemReaders>
class RunningTime {
public:
    explicit RunningTime(std::vector<pid_t> pids = {}, Readers readers = {})
        : readers_(std::move(readers)), pids_(std::move(pids)) {
        if (pids_.empty()) pids_.push_back(::getpid());
        stalled_ = readers_.stalled_ns();
        for (const std::optional<int64_t>& queued : readers_.queued_ns(pids_)) {
            all_known_ = all_known_ && queued.has_value();
            processes_.push_back({queued.value_or(0), 0});
        }
        begun_ = readers_.wall_ns();  // on a loaded machine the look at the figures takes seconds
    }
    int64_t wall_ns() const { return readers_.wall_ns() - begun_; }
    // Never more than wall_ns(). Without the figure of one of the processes, the stall of the whole system counts.
    int64_t running_ns() const {
        const int64_t wall = wall_ns();
        return wall - std::clamp(all_known_ ? queued_ns() : stalled_ns(), int64_t{0}, wall);
    }

private:
    struct Process {
        int64_t at_begin, grown;
    };
    // Threads that ended take their figures with them, so that the largest sum seen counts.
    int64_t queued_ns() const {
        const std::vector<std::optional<int64_t>> now = readers_.queued_ns(pids_);
        int64_t sum = 0;
        for (size_t i = 0; i < processes_.size(); ++i) {
            Process& process = processes_[i];
            if (now[i]) process.grown = std::max(process.grown, *now[i] - process.at_begin);
            sum += process.grown;
        }
        return sum;
    }
    int64_t stalled_ns() const {
        const std::optional<int64_t> stalled = readers_.stalled_ns();
        return stalled && stalled_ ? *stalled - *stalled_ : 0;
    }

    Readers readers_;
    std::vector<pid_t> pids_;
    int64_t begun_ = 0;
    std::optional<int64_t> stalled_;
    bool all_known_ = true;
    mutable std::vector<Process> processes_;  // in the order of pids_
};

// Result of a wait. EXPECT_TRUE(eventually(...)) prints the message; a program without GoogleTest prints it itself.
struct Waited {
    bool holds = false;
    std::string message;
    operator bool() const { return holds; }  // NOLINT(google-explicit-constructor): as conditions are
    template <std::same_as<testing::AssertionResult> Result>
    operator Result() const {  // NOLINT(google-explicit-constructor): EXPECT_TRUE converts
        return Result(holds) << message;
    }
};

// Processes whose running time counts; this one if the list is empty.
struct WaitFor {
    std::vector<pid_t> pids = {};
    std::chrono::nanoseconds limit = kEventuallyLimit;
};

// Waits until condition() is true. `what` names the condition for the message: "the agent listens".
// Any thread may call it; the condition runs in the caller's thread and may do work (poll a queue, call waitpid).
template <typename Condition, typename Readers = SystemReaders>
Waited eventually(const std::string& what, Condition condition, const WaitFor& wait = {}, Readers readers = {}) {
    if (condition()) return {true, {}};
    RunningTime<Readers> time(wait.pids, readers);
    const int64_t limit = wait.limit.count();
    int64_t next_look = limit;  // wall time at which the limit can have passed
    for (int turn = 0;; ++turn) {
        readers.pause(turn);
        if (condition()) return {true, {}};
        const int64_t wall = time.wall_ns();
        if (wall >= next_look) {
            const int64_t running = time.running_ns();
            if (running >= limit || wall >= kHardEnd * limit) {
                if (condition()) return {true, {}};
                const auto ms = [](int64_t ns) { return std::to_string(ns / 1'000'000) + " ms"; };
                return {false, "waited for: " + what + "; not so after " + ms(wall) + " of wall time, " + ms(running) +
                                   " of running time (limit " + ms(limit) + ")"};
            }
            next_look = std::min(wall + (limit - running), kHardEnd * limit);
        }
    }
}

}  // namespace viaduct::tests
