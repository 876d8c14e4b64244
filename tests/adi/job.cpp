// SPDX-License-Identifier: BSD-2-Clause
// Forks the processes, waits for them within the limit, and kills what is left then; see job.hpp.
#include "job.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "tests/eventually.hpp"

namespace viaduct::adi_test {

namespace {
constexpr int kMost = 64;
constexpr size_t kCard = 4096;
constexpr std::chrono::hours kNoLimit(1);  // of its own
}  // namespace

struct Shared {
    std::atomic<int> arrived;
    std::atomic<int> turn;
    int word;
    uint32_t length[kMost];
    char card[kMost][kCard];
};

void fail(const char* file, int line, const char* what) {
    std::fprintf(stderr, "%s:%d: process %d: not so: %s\n", file, line, static_cast<int>(::getpid()), what);
    ::_exit(1);
}

void Job::barrier() {
    const int turn = shared_->turn.load();
    if (shared_->arrived.fetch_add(1) + 1 == size_) {
        shared_->arrived.store(0);
        shared_->turn.fetch_add(1);
        return;
    }
    while (shared_->turn.load() == turn) ::sched_yield();
}

std::vector<std::string> Job::exchange(const std::string& mine) {
    CHECK(mine.size() <= kCard);
    std::memcpy(shared_->card[rank_], mine.data(), mine.size());
    shared_->length[rank_] = static_cast<uint32_t>(mine.size());
    barrier();
    std::vector<std::string> all;
    all.reserve(static_cast<size_t>(size_));
    for (int i = 0; i < size_; ++i) all.emplace_back(shared_->card[i], shared_->length[i]);
    barrier();
    return all;
}

int* Job::word() { return &shared_->word; }
void Job::say(int what) { __atomic_store_n(word(), what, __ATOMIC_SEQ_CST); }
int Job::said() { return __atomic_load_n(word(), __ATOMIC_SEQ_CST); }
// run_job ends processes whose wait takes too long.
void Job::await(int what) {
    CHECK(tests::eventually("the word of another process", [&] { return said() == what; }, {.limit = kNoLimit}));
}
pid_t Job::await_process() {
    CHECK(tests::eventually("the number of another process", [&] { return said() != 0; }, {.limit = kNoLimit}));
    return said();
}
void Job::await_end(pid_t process) {
    const auto has_ended = [&] { return ::kill(process, 0) != 0; };
    CHECK(tests::eventually("the end of another process", has_ended, {.limit = kNoLimit}));
}

int run_job(const char* name, int size, int seconds, const std::function<void(Job&)>& body,
            const std::vector<int>& killed, int* word) {
    auto* shared = static_cast<Shared*>(
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    if (shared == MAP_FAILED) return 1;
    std::fflush(nullptr);
    std::vector<pid_t> processes;
    for (int rank = 0; rank < size; ++rank) {
        const pid_t pid = ::fork();
        if (pid == 0) {
            Job job(shared, rank, size);
            body(job);
            std::fflush(nullptr);
            ::_exit(0);
        }
        processes.push_back(pid);
    }
    tests::RunningTime<> time(processes);
    const int64_t limit = int64_t{seconds} * 1'000'000'000;
    int bad = 0;
    size_t left = processes.size();
    bool late = false;
    while (left > 0) {
        for (size_t rank = 0; rank < processes.size(); ++rank) {
            int status = 0;
            if (processes[rank] <= 0 || ::waitpid(processes[rank], &status, WNOHANG) != processes[rank])
                continue;
            processes[rank] = 0;
            --left;
            const bool to_be_killed =
                std::find(killed.begin(), killed.end(), static_cast<int>(rank)) != killed.end();
            const bool good = to_be_killed ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
                                           : WIFEXITED(status) && WEXITSTATUS(status) == 0;
            if (good) continue;
            ++bad;
            std::fprintf(stderr, "%s: process %zu of %d ended with status 0x%x\n", name, rank, size, status);
        }
        const int64_t wall = time.wall_ns();
        const bool over = wall > limit && (time.running_ns() > limit || wall > tests::kHardEnd * limit);
        if ((over || bad != 0) && !late) {
            late = true;
            if (over) std::fprintf(stderr, "%s: not done after %d s\n", name, seconds);
            bad += over ? 1 : 0;
            if (bad != 0 && std::getenv("VIADUCT_TEST_HOLD") != nullptr)
                std::this_thread::sleep_for(std::chrono::seconds(20));  // sleeps: for a debugger
            for (const pid_t pid : processes) {
                if (pid > 0) ::kill(pid, SIGKILL);
            }
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));  // sleeps: between two looks at all processes
    }
    if (word != nullptr) *word = shared->word;
    ::munmap(shared, sizeof(Shared));
    const double took = static_cast<double>(time.wall_ns()) * 1e-9;
    std::printf("%-32s %2d processes  %6.2f s  %s\n", name, size, took, bad == 0 ? "ok" : "FAILED");
    return bad;
}

}  // namespace viaduct::adi_test
