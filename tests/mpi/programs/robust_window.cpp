// SPDX-License-Identifier: BSD-2-Clause
// A window of the program's memory when one of its three processes has died, and only one of the two others knows it:
// its memory is not written once it has freed the window, and it does not count in the fence of the other one.
// usage: robust_window freed | fence
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "tests/eventually.hpp"
#include "tests/mpi/programs/check.hpp"

namespace {

// Rank 1 makes no call of MPI until the one that knows of the death has freed its window.
constexpr int kKnows = 0;  // that the victim has died: its own operation has told it
constexpr int kVictim = 2;
constexpr int kWords = 3;
constexpr long kOwn = 7;
constexpr unsigned kLongest = 100;  // seconds until a process that waits for ever ends

// In memory that all have mapped: how far they are, without a call of MPI.
struct Shared {
    std::atomic<int> victim;  // its process number
    std::atomic<bool> freed, tried;
};

int rank;
Shared* shared;

// sleeps: for its callers
void pause_for(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

constexpr std::chrono::minutes kNoLimit(10);  // of its own: the job has one

template <typename Condition>
void wait_until(Condition&& holds) {
    EXPECT(viaduct::tests::eventually("the step of another rank", holds, {.limit = kNoLimit}).holds);
}

// After so long that it waits in the call that it makes now.
void die_soon() {
    shared->victim = ::getpid();
    std::thread([] {
        pause_for(300);  // sleeps: the main thread reaches its call
        ::raise(SIGKILL);
    }).detach();
}

void wait_for_death() {
    wait_until([] { return shared->victim != 0; });
    wait_until([] { return ::kill(shared->victim, 0) != 0 && errno == ESRCH; });
}

int put_one(int target, MPI_Win window) {
    const long word = 9;
    return MPI_Put(&word, 1, MPI_LONG, target, 0, 1, MPI_LONG, window);
}

MPI_Win window_of(long* words, MPI_Comm comm) {
    MPI_Win window = MPI_WIN_NULL;
    EXPECT(MPI_Win_create(words, kWords * sizeof *words, sizeof *words, MPI_INFO_NULL, comm, &window) == MPI_SUCCESS);
    MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
    return window;
}

// The memory of a window that is freed is the program's own again.
void freed(MPI_Comm comm) {
    long words[kWords] = {kOwn, kOwn, kOwn};
    MPI_Win window = window_of(words, comm);
    EXPECT(MPI_Win_lock_all(MPI_MODE_NOCHECK, window) == MPI_SUCCESS);
    EXPECT(MPI_Barrier(comm) == MPI_SUCCESS);
    if (rank == kVictim) {
        die_soon();
        ::pause();
    }
    wait_for_death();
    if (rank == kKnows) {
        EXPECT(put_one(kVictim, window) == MPIX_ERR_PROC_FAILED);
        (void)MPI_Win_unlock_all(window);
        EXPECT(MPI_Win_free(&window) == MPI_SUCCESS);
        shared->freed = true;
        wait_until([] { return shared->tried.load(); });
        for (const long word : words) EXPECT(word == kOwn);
        return;
    }
    wait_until([] { return shared->freed.load(); });
    long word = 1, found = 0;
    EXPECT(put_one(kKnows, window) == MPIX_ERR_PROC_FAILED);
    EXPECT(MPI_Get(&found, 1, MPI_LONG, kKnows, 0, 1, MPI_LONG, window) == MPIX_ERR_PROC_FAILED);
    EXPECT(MPI_Accumulate(&word, 1, MPI_LONG, kKnows, 1, 1, MPI_LONG, MPI_SUM, window) == MPIX_ERR_PROC_FAILED);
    EXPECT(MPI_Compare_and_swap(&word, &kOwn, &found, MPI_LONG, kKnows, 2, window) == MPIX_ERR_PROC_FAILED);
    shared->tried = true;
    (void)MPI_Win_unlock_all(window);
    EXPECT(MPI_Win_free(&window) == MPI_SUCCESS);
}

// The victim dies inside the fence, in which two have come then. The one that knows it frees the window instead.
void fence(MPI_Comm comm) {
    long words[kWords] = {};
    MPI_Win window = window_of(words, comm);
    EXPECT(MPI_Win_fence(0, window) == MPI_SUCCESS);
    EXPECT(MPI_Barrier(comm) == MPI_SUCCESS);
    if (rank == kVictim) {
        die_soon();
        (void)MPI_Win_fence(0, window);
        ::pause();
    }
    wait_for_death();
    if (rank == kKnows) {
        EXPECT(put_one(kVictim, window) == MPIX_ERR_PROC_FAILED);
        EXPECT(MPI_Win_free(&window) == MPI_SUCCESS);
        shared->freed = true;
        return;
    }
    wait_until([] { return shared->freed.load(); });
    EXPECT(MPI_Win_fence(0, window) == MPIX_ERR_PROC_FAILED);
    EXPECT(MPI_Win_free(&window) == MPI_SUCCESS);
}

}  // namespace

int main(int argc, char** argv) {
    const std::string what = argc > 1 ? argv[1] : "freed";
    MPI_Init(&argc, &argv);
    ::alarm(kLongest);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win memory = MPI_WIN_NULL;
    MPI_Aint bytes = 0;
    int unit = 0;
    EXPECT(MPI_Win_allocate_shared(rank == 0 ? sizeof(Shared) : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &shared,
                                   &memory) == MPI_SUCCESS);
    EXPECT(MPI_Win_shared_query(memory, 0, &bytes, &unit, &shared) == MPI_SUCCESS);
    MPI_Win_set_errhandler(memory, MPI_ERRORS_RETURN);
    EXPECT(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
    if (what == "fence")
        fence(MPI_COMM_WORLD);
    else
        freed(MPI_COMM_WORLD);
    (void)MPI_Win_free(&memory);
    MPI_Comm left = MPI_COMM_NULL;
    EXPECT(MPIX_Comm_shrink(MPI_COMM_WORLD, &left) == MPI_SUCCESS);
    int all = 0;
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, left);
    if (rank == 0 && all == 0) std::puts("No Errors");
    MPI_Comm_free(&left);
    MPI_Finalize();
    return all != 0;
}
