// SPDX-License-Identifier: BSD-2-Clause
// A job that goes on when its processes die. usage: robust PART SEED ROUNDS [twice|once FILE [threads]]
// In each round one process that the seed chooses kills itself in the middle of PART (p2p, collectives, nonblocking,
// rma, files), with `twice` another one inside MPIX_Comm_shrink. Those that are left revoke the communicator, shrink
// it, and do PART with the new one, which has to give what is right. Each round goes on with the communicator of the
// round before, until ROUNDS are over or two processes are left. What a process holds (descriptors, memory) must not
// grow. With `threads` another thread of each process waits for a message from anywhere meanwhile, acknowledges what it
// hears of, and waits on. The first process that is left prints "No Errors" when all is so everywhere.
#include <malloc.h>
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/eventually.hpp"
#include "tests/open_files.hpp"

namespace {

// Seconds of running time from a death to the errors of those that wait for the dead.
constexpr double kLongestSilence = 1;
[[maybe_unused]] constexpr long kMostGrowth = 512;  // KiB, of a process after its first round
double silence = 0;                    // the longest so far

int world_rank;
int failures = 0;

void expect(bool holds, const char* what, int line) {
    if (holds) return;
    failures++;
    std::printf("rank %d line %d: %s\n", world_rank, line, what);
    std::fflush(stdout);
}
#define EXPECT(condition) expect(condition, #condition, __LINE__)

[[noreturn]] void die() {
    ::raise(SIGKILL);
    std::abort();
}

bool is_loss(int error) {
    int kind = MPI_SUCCESS;
    MPI_Error_class(error, &kind);
    return kind == MPIX_ERR_PROC_FAILED || kind == MPIX_ERR_REVOKED || kind == MPIX_ERR_PROC_FAILED_PENDING;
}

int size_of(MPI_Comm comm) {
    int size = 0;
    MPI_Comm_size(comm, &size);
    return size;
}
int rank_of(MPI_Comm comm) {
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    return rank;
}

// A ring of short and long messages; the first error ends it.
int ring(MPI_Comm comm, int step) {
    const int size = size_of(comm), rank = rank_of(comm);
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    const int count = step % 4 == 3 ? 200'000 : 16;
    std::vector<int> out(count, rank), in(count, -1);
    if (const int error = MPI_Sendrecv(out.data(), count, MPI_INT, right, step, in.data(), count, MPI_INT, left, step,
                                       comm, MPI_STATUS_IGNORE))
        return error;
    EXPECT(in[0] == left && in[count - 1] == left);
    return MPI_SUCCESS;
}

int reductions(MPI_Comm comm, int step) {
    const int size = size_of(comm), rank = rank_of(comm);
    const int count = step % 3 == 2 ? 100'000 : 1;
    std::vector<long> in(count, rank + step), out(count, -1);
    if (const int error = MPI_Allreduce(in.data(), out.data(), count, MPI_LONG, MPI_SUM, comm)) return error;
    const long sum = long(size) * (size - 1) / 2 + long(size) * step;
    EXPECT(out[0] == sum && out[count - 1] == sum);
    std::vector<int> word(count, rank == step % size ? step : -1);
    if (const int error = MPI_Bcast(word.data(), count, MPI_INT, step % size, comm)) return error;
    EXPECT(word[0] == step && word[count - 1] == step);
    return MPI_Barrier(comm);
}

int without_waiting(MPI_Comm comm, int step) {
    const int size = size_of(comm), rank = rank_of(comm);
    long in = rank, out = -1;
    int word = -1;
    MPI_Request requests[3];
    if (const int error = MPI_Iallreduce(&in, &out, 1, MPI_LONG, MPI_SUM, comm, &requests[0])) return error;
    MPI_Irecv(&word, 1, MPI_INT, MPI_ANY_SOURCE, step, comm, &requests[1]);
    MPI_Isend(&rank, 1, MPI_INT, (rank + 1) % size, step, comm, &requests[2]);
    int first = MPI_SUCCESS;
    for (MPI_Request& request : requests) {
        const int error = MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (error == MPIX_ERR_PROC_FAILED_PENDING) {
            EXPECT(request != MPI_REQUEST_NULL);
            MPI_Cancel(&request);
            (void)MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        EXPECT(request == MPI_REQUEST_NULL);
        if (first == MPI_SUCCESS) first = error;
    }
    if (first == MPI_SUCCESS) EXPECT(out == long(size) * (size - 1) / 2 && word == (rank + size - 1) % size);
    return first;
}

int windows(MPI_Comm comm, int step) {
    const int size = size_of(comm), rank = rank_of(comm);
    long memory[3] = {rank, 0, 0};
    MPI_Win win = MPI_WIN_NULL;
    long* base = memory;
    int error = MPI_SUCCESS;
    if (step % 2 == 0)
        error = MPI_Win_create(memory, sizeof memory, sizeof(long), MPI_INFO_NULL, comm, &win);
    else
        error = MPI_Win_allocate(sizeof memory, sizeof(long), MPI_INFO_NULL, comm, &base, &win);
    if (error != MPI_SUCCESS) return error;
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    base[0] = rank;
    base[1] = base[2] = 0;
    const auto work = [&]() -> int {
        if (const int failed = MPI_Win_fence(0, win)) return failed;
        long got = -1;
        const long one = 1;
        if (const int failed = MPI_Get(&got, 1, MPI_LONG, (rank + 1) % size, 0, 1, MPI_LONG, win)) return failed;
        if (const int failed = MPI_Accumulate(&one, 1, MPI_LONG, step % size, 1, 1, MPI_LONG, MPI_SUM, win))
            return failed;
        if (const int failed = MPI_Win_fence(0, win)) return failed;
        EXPECT(got == (rank + 1) % size);
        if (rank == step % size) EXPECT(base[1] == size);
        long old = 0;
        if (const int failed = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win)) return failed;
        const int fetched = MPI_Fetch_and_op(&one, &old, MPI_LONG, 0, 2, MPI_SUM, win);
        const int unlocked = MPI_Win_unlock(0, win);
        return fetched != MPI_SUCCESS ? fetched : unlocked;
    };
    error = work();
    const int freed = MPI_Win_free(&win);
    EXPECT(win == MPI_WIN_NULL);
    return error != MPI_SUCCESS ? error : freed;
}

int files(MPI_Comm comm, int step, const std::string& name) {
    const int size = size_of(comm), rank = rank_of(comm);
    MPI_File file = MPI_FILE_NULL;
    if (const int error = MPI_File_open(comm, name.c_str(), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file))
        return error;
    const auto work = [&]() -> int {
        std::vector<int> out(64, rank + step), in(64, -1);
        if (const int failed = MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL)) return failed;
        if (const int failed = MPI_File_write_at_all(file, rank * 64, out.data(), 64, MPI_INT, MPI_STATUS_IGNORE))
            return failed;
        if (const int failed = MPI_File_sync(file)) return failed;
        const int other = (rank + 1) % size;
        if (const int failed = MPI_File_read_at_all(file, other * 64, in.data(), 64, MPI_INT, MPI_STATUS_IGNORE))
            return failed;
        EXPECT(in[0] == other + step && in[63] == other + step);
        return MPI_SUCCESS;
    };
    const int error = work();
    const int closed = MPI_File_close(&file);
    EXPECT(file == MPI_FILE_NULL);
    return error != MPI_SUCCESS ? error : closed;
}

int one_step(const std::string& part, MPI_Comm comm, int step, const std::string& file) {
    if (part == "p2p") return ring(comm, step);
    if (part == "collectives") return reductions(comm, step);
    if (part == "nonblocking") return without_waiting(comm, step);
    if (part == "rma") return windows(comm, step);
    if (part == "files") return files(comm, step, file);
    std::abort();
}

// The victim dies at a random moment: a signal of a timer comes while it works.
void die_soon(int microseconds) {
    struct sigaction action = {};
    action.sa_handler = [](int) { ::raise(SIGKILL); };
    ::sigaction(SIGALRM, &action, nullptr);
    ::ualarm(unsigned(microseconds) + 1, 0);
}

MPI_Comm shrink(MPI_Comm comm, bool victim) {
    if (victim) {
        // In the middle: its vote may be out or not.
        die_soon(std::rand() % 300);
    }
    MPI_Comm made = MPI_COMM_NULL;
    EXPECT(MPIX_Comm_shrink(comm, &made) == MPI_SUCCESS);
    if (victim) die();
    return made;
}

// What this process holds. Of memory what it has allocated: threads of the library begin when they are needed, and
// their stacks are no growth.
struct Held {
    viaduct::tests::OpenFiles descriptors;
    long kilobytes = 0;
};

Held held() {
    Held now;
    now.descriptors = viaduct::tests::open_files();
    const struct mallinfo2 heap = ::mallinfo2();
    now.kilobytes = long((heap.uordblks + heap.hblkhd) / 1024);
    return now;
}

// Waits for a message from this process itself, on a communicator of its own, and hears of each loss before it comes.
class Listener {
public:
    Listener() {
        EXPECT(MPI_Comm_dup(MPI_COMM_WORLD, &comm_) == MPI_SUCCESS);
        thread_ = std::thread([this] {
            int word = 0, error = MPI_SUCCESS;
            for (;;) {
                error = MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, 0, comm_, MPI_STATUS_IGNORE);
                if (error == MPI_SUCCESS) break;
                wrong_ += error != MPIX_ERR_PROC_FAILED ? 1 : 0;
                MPIX_Comm_failure_ack(comm_);
                heard_++;
            }
        });
    }
    void end() {
        MPI_Send(&world_rank, 1, MPI_INT, world_rank, 0, comm_);
        thread_.join();
        EXPECT(wrong_ == 0 && heard_ > 0);
        MPI_Comm_free(&comm_);
    }

private:
    MPI_Comm comm_ = MPI_COMM_NULL;
    std::thread thread_;
    int heard_ = 0;
    int wrong_ = 0;
};

// What the program sees of a communicator that has been revoked.
void look_at_revoked(MPI_Comm comm) {
    int revoked = 0, word = 0, flag = 0;
    EXPECT(MPIX_Comm_is_revoked(comm, &revoked) == MPI_SUCCESS && revoked == 1);
    EXPECT(MPI_Barrier(comm) == MPIX_ERR_REVOKED);
    EXPECT(MPI_Send(&word, 1, MPI_INT, 0, 0, comm) == MPIX_ERR_REVOKED);
    EXPECT(MPI_Ssend(&word, 1, MPI_INT, 0, 0, comm) == MPIX_ERR_REVOKED);
    EXPECT(MPI_Recv(&word, 1, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE) == MPIX_ERR_REVOKED);
    EXPECT(MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, 0, comm, MPI_STATUS_IGNORE) == MPIX_ERR_REVOKED);
    EXPECT(MPI_Iprobe(0, 0, comm, &flag, MPI_STATUS_IGNORE) == MPIX_ERR_REVOKED);
    EXPECT(MPI_Probe(MPI_ANY_SOURCE, 0, comm, MPI_STATUS_IGNORE) == MPIX_ERR_REVOKED);
}

// Work, the death of one, or two, and work of those that are left. Returns their communicator.
MPI_Comm round(const std::string& part, MPI_Comm comm, std::mt19937& chance, bool twice, const std::string& file) {
    const int size = size_of(comm), rank = rank_of(comm);
    const int victim = int(chance() % unsigned(size));
    const int later = (victim + 1 + int(chance() % unsigned(size - 1))) % size;
    const int death_step = 2 + int(chance() % 20);
    const int death_after = int(chance() % 3000);
    std::vector<pid_t> processes(static_cast<size_t>(size));
    const pid_t self = ::getpid();
    static_assert(sizeof(pid_t) == sizeof(int));
    int error = MPI_Allgather(&self, 1, MPI_INT, processes.data(), 1, MPI_INT, comm);
    viaduct::tests::RunningTime<> time(processes);
    int64_t begun = 0;  // of the last step, which has failed
    for (int step = 0; error == MPI_SUCCESS; step++) {
        if (rank == victim && step == death_step) die_soon(death_after);
        begun = time.wall_ns();
        error = one_step(part, comm, step, file);
    }
    double longest = static_cast<double>(time.wall_ns() - begun) * 1e-9;
    if (longest > kLongestSilence)  // without the time for which the processes have waited for a processor
        longest -= static_cast<double>(time.wall_ns() - time.running_ns()) * 1e-9;
    EXPECT(longest <= kLongestSilence);
    silence = std::max(silence, longest);
    EXPECT(is_loss(error));
    EXPECT(MPIX_Comm_revoke(comm) == MPI_SUCCESS);
    look_at_revoked(comm);
    MPI_Comm now = shrink(comm, twice && rank == later);
    MPI_Comm_free(&comm);
    for (;;) {
        int good = 1;
        for (int step = 0; step < 8 && good == 1; step++) good = one_step(part, now, step, file) == MPI_SUCCESS ? 1 : 0;
        if (good == 0) MPIX_Comm_revoke(now);
        const int agreed = MPIX_Comm_agree(now, &good);
        if (agreed == MPI_SUCCESS && good == 1) break;
        EXPECT(agreed == MPI_SUCCESS || agreed == MPIX_ERR_PROC_FAILED);
        MPI_Comm again = shrink(now, false);
        MPI_Comm_free(&now);
        now = again;
    }
    const int lost = size - size_of(now);
    if (lost != (twice ? 2 : 1)) std::printf("rank %d: %d of %d are lost\n", rank, lost, size);
    EXPECT(lost == (twice ? 2 : 1));
    return now;
}

}  // namespace

int main(int argc, char** argv) {
    const std::string part = argc > 1 ? argv[1] : "p2p";
    const unsigned seed = argc > 2 ? unsigned(std::atoi(argv[2])) : 1;
    const int rounds = argc > 3 ? std::atoi(argv[3]) : 1;
    const bool twice = argc > 4 && std::string(argv[4]) == "twice";
    const std::string file = argc > 5 ? argv[5] : "/tmp/robust-test-file";
    const bool threads = argc > 6 && std::string(argv[6]) == "threads";
    int given = MPI_THREAD_SINGLE;
    MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
    std::srand(seed * 64 + unsigned(world_rank));
    std::mt19937 chance(seed);
    const int before = size_of(MPI_COMM_WORLD);

    MPI_Comm comm;
    EXPECT(MPI_Comm_dup(MPI_COMM_WORLD, &comm) == MPI_SUCCESS);
    std::optional<Listener> listener;
    if (threads) listener.emplace();
    Held first;
    int done = 0;
    for (; done < rounds && size_of(comm) > (twice ? 3 : 2); done++) {
        comm = round(part, comm, chance, twice, file);
        if (done == 0) first = held();
    }
    const Held last = held();
    if (listener) listener->end();
    EXPECT(last.descriptors.size() <= first.descriptors.size());
    if (last.descriptors.size() > first.descriptors.size()) {
        for (const auto& [number, what] : last.descriptors)
            if (!first.descriptors.contains(number))
                std::printf("rank %d: descriptor %s is open: %s\n", world_rank, number.c_str(), what.c_str());
    }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // those keep what is freed
    if (last.kilobytes > first.kilobytes + kMostGrowth)
        std::printf("rank %d: heap %ld to %ld KiB\n", world_rank, first.kilobytes, last.kilobytes);
    EXPECT(last.kilobytes <= first.kilobytes + kMostGrowth);
#endif

    // The world's failures are known, and acknowledged.
    MPI_Group failed;
    int count = 0;
    EXPECT(MPIX_Comm_get_failed(MPI_COMM_WORLD, &failed) == MPI_SUCCESS);
    MPI_Group_size(failed, &count);
    EXPECT(count == before - size_of(comm));
    EXPECT(MPIX_Comm_failure_ack(MPI_COMM_WORLD) == MPI_SUCCESS);
    int all = 0;
    EXPECT(MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
    if (rank_of(comm) == 0) {
        std::printf("%s: %d rounds, %d of %d left, known after %.3f s, ", part.c_str(), done, size_of(comm), before,
                    silence);
        std::printf("descriptors %zu to %zu, heap %ld to %ld KiB\n%s\n", first.descriptors.size(),
                    last.descriptors.size(), first.kilobytes, last.kilobytes, all == 0 ? "No Errors" : "Errors");
        std::fflush(stdout);
    }
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return failures == 0 ? 0 : 1;
}
