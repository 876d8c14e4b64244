// SPDX-License-Identifier: BSD-2-Clause
// viaduct_crowd_limit RANKS: what a barrier of more processes than processors cannot be quicker than: flags
// in shared memory and nothing else. A process that waits for one of its own processor yields at once, else it
// looks; so each barrier is one switch less than there are processes on a processor. Each process is in a
// session of its own, as below Hydra, where the kernel groups processes by session. Prints "coll4 0 NS", the
// line of mpi_peer.c.
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <new>

namespace {

constexpr int kMost = 64;
constexpr uint64_t kWarm = 2000;
constexpr uint64_t kMeasured = 10'000;
constexpr int kLooks = 200;  // some microseconds, then another process may have been put on our processor

struct alignas(128) Word {
    std::atomic<uint64_t> value;
};
struct Shared {
    Word at[kMost];   // the barrier each process has come to
    Word cpu[kMost];  // where it was then
};

double now_ns() {
    timespec now = {};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

void barrier(Shared& shared, int ranks, int own, uint64_t number) {
    shared.at[own].value.store(number, std::memory_order_release);
    for (int looks = 0;;) {
        const auto here = static_cast<uint64_t>(::sched_getcpu());
        if (shared.cpu[own].value.load(std::memory_order_relaxed) != here)
            shared.cpu[own].value.store(here, std::memory_order_relaxed);
        int missing = 0, missing_here = 0;
        for (int rank = 0; rank < ranks; rank++) {
            if (shared.at[rank].value.load(std::memory_order_acquire) >= number) continue;
            missing++;
            missing_here += shared.cpu[rank].value.load(std::memory_order_relaxed) == here ? 1 : 0;
        }
        if (missing == 0) return;
        if (missing_here == 0 && ++looks < kLooks) continue;
        looks = 0;
        ::sched_yield();
    }
}

void take_part(Shared& shared, int ranks, int own) {
    uint64_t number = 1;
    while (number <= kWarm) barrier(shared, ranks, own, number++);
    const double began = now_ns();
    while (number <= kWarm + kMeasured) barrier(shared, ranks, own, number++);
    const double took = now_ns() - began;
    if (own == 0) std::printf("coll%d 0 %.2f\n", ranks, took / kMeasured);
}

}  // namespace

int main(int argc, char** argv) {
    const int ranks = argc == 2 ? std::atoi(argv[1]) : 0;
    if (ranks < 2 || ranks > kMost) {
        std::fprintf(stderr, "usage: viaduct_crowd_limit RANKS\n");
        return 2;
    }
    void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 1;
    Shared& shared = *new (memory) Shared();
    for (int rank = 0; rank < ranks; rank++) {
        const pid_t child = ::fork();
        if (child < 0) return 1;
        if (child != 0) continue;
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // the others cannot go on without one that was not made
        ::setsid();
        take_part(shared, ranks, rank);
        std::fflush(stdout);
        ::_exit(0);
    }
    int failed = 0, status = 0;
    while (::wait(&status) > 0) failed += status != 0 ? 1 : 0;
    return failed == 0 ? 0 : 1;
}
