// SPDX-License-Identifier: BSD-2-Clause
// A thread that gives the processor away does not hold the engine's lock (mpi-adi/engine/critical.hpp), whichever part
// of the library it is in. usage: yields, a job of two processes. In the first one a thread waits for messages, and
// each yield of it lasts until another thread has made a call of MPI. A yield that ends without such a call has the
// lock. So each yield lasts long, as on a machine where other programs compute, and no load is needed.
#include <mpi.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>

#include "../../eventually.hpp"

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMessages = 20;
constexpr auto kBeforeMessage = std::chrono::milliseconds(20);
constexpr auto kLimit = std::chrono::seconds(10);

thread_local bool awaited_here = false;
std::atomic<unsigned> begun{0};     // yields of the thread that waits
std::atomic<unsigned> answered{0};  // of them, the last one in which a call has come back
std::atomic<bool> held{false};      // the call did not come back
std::atomic<bool> received{false};

void answer() {
    const unsigned yield = begun.load();
    if (yield == answered.load()) {
        ::usleep(100);  // sleeps: this thread leaves the processor to the one that waits
        return;
    }
    int result = 0;
    MPI_Comm_compare(MPI_COMM_WORLD, MPI_COMM_WORLD, &result);
    answered = yield;
}

void receive() {
    int word = 0;
    awaited_here = true;
    MPI_Recv(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    awaited_here = false;
    received = true;
}

void ask_and_wait() {
    received = false;
    std::thread waiter(receive);
    const auto until = Clock::now() + kBeforeMessage;
    while (Clock::now() < until) answer();
    const int word = 1;
    MPI_Send(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    while (!received) answer();
    waiter.join();
}

void reply() {
    int word = 0;
    MPI_Recv(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
}

}  // namespace

// The pauses of a wait in sched_yield do not yield.
struct Sleeping : viaduct::tests::SystemReaders {
    void pause(int) const { ::usleep(100); }  // sleeps: between two looks
};

// The library's calls of it come here.
extern "C" int sched_yield() noexcept {
    if (awaited_here && !held) {
        const unsigned mine = ++begun;
        const auto is_answered = [&] { return answered.load() == mine; };
        if (!viaduct::tests::eventually("the answer", is_answered, {.limit = kLimit}, Sleeping{})) held = true;
    }
    return int(::syscall(SYS_sched_yield));
}

int main(int argc, char** argv) {
    int given = MPI_THREAD_SINGLE, rank = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < kMessages; i++) rank == 0 ? ask_and_wait() : reply();
    MPI_Finalize();
    if (rank != 0) return 0;
    const bool good = given == MPI_THREAD_MULTIPLE && begun > 0 && !held;
    std::printf("%u yields%s\n%s\n", begun.load(), held ? ", one of them with the engine's lock" : "",
                good ? "No Errors" : "Errors");
    return good ? 0 : 1;
}
