// SPDX-License-Identifier: BSD-2-Clause
// One-sided operations on a target that computes: it makes no MPI call until it sees in its own memory that all the
// others have done theirs, each kind of operation in each kind of window, with locks, and with the right results. Where
// a target's help were needed it would wait until its deadline. Rank 0 prints how long an operation takes.
// `reached FLAVOUR...`: of these kinds only (create, dynamic, allocate).
// `exec`: the last rank becomes another program, in which nothing may be written; the others are told.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "check.hpp"

namespace {

using Clock = std::chrono::steady_clock;

int rank, size;

// What lies in the window of each member.
struct Memory {
    int64_t done;  // by how many the target has been told that they have finished
    int64_t sum, swapped, turns;
    int32_t places[64];
    char bytes[100000];
    double numbers[5000];
};

class Window {
public:
    explicit Window(const std::string& flavour) : dynamic_(flavour == "dynamic") {
        if (flavour == "allocate") {
            MPI_Win_allocate(sizeof(Memory), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &win);
        } else {
            own_.resize(sizeof(Memory) + 64);
            own = reinterpret_cast<Memory*>((reinterpret_cast<uintptr_t>(own_.data()) + 63) / 64 * 64);
            if (dynamic_) {
                MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
                // In two ranges that meet.
                EXPECT(MPI_Win_attach(win, own, 128) == MPI_SUCCESS);
                EXPECT(MPI_Win_attach(win, reinterpret_cast<char*>(own) + 128, sizeof(Memory) - 128) == MPI_SUCCESS);
            } else {
                MPI_Win_create(own, sizeof(Memory), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
            }
        }
        MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
        std::memset(static_cast<void*>(own), 0, sizeof(Memory));
        const auto address = MPI_Aint(reinterpret_cast<intptr_t>(own));
        bases_.resize(size_t(size));
        MPI_Allgather(&address, 1, MPI_AINT, bases_.data(), 1, MPI_AINT, MPI_COMM_WORLD);
    }
    ~Window() { EXPECT(MPI_Win_free(&win) == MPI_SUCCESS); }
    Window(const Window&) = delete;
    Window& operator=(const Window&) = delete;

    MPI_Aint at(int target, size_t offset) const {
        return (dynamic_ ? bases_[size_t(target)] : 0) + MPI_Aint(offset);
    }

    Memory* own = nullptr;
    MPI_Win win = MPI_WIN_NULL;

private:
    const bool dynamic_;
    std::vector<char> own_;
    std::vector<MPI_Aint> bases_;
};

// Without any MPI call. False: the value has not come for too long.
bool compute_until(const int64_t& word, int64_t value) {
    const auto deadline = Clock::now() + std::chrono::seconds(20);
    while (std::atomic_ref<int64_t>(const_cast<int64_t&>(word)).load() != value)
        if (Clock::now() > deadline) return false;
    return true;
}

// The median of some runs, told where rank 0 is the only origin.
template <typename Operation>
void timed(const char* flavour, const char* what, Operation&& operation) {
    std::vector<double> us(200);
    for (double& one : us) {
        const auto start = Clock::now();
        operation();
        one = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
    }
    std::nth_element(us.begin(), us.begin() + 100, us.end());
    if (size == 2) std::printf("%s: %s %.2f us\n", flavour, what, us[100]);
}

void operate(const Window& w, const char* flavour, int target) {
    const MPI_Win win = w.win;
    const int64_t one = 1;
    const MPI_Aint sum = w.at(target, offsetof(Memory, sum));
    int64_t old = 0;
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
    timed(flavour, "fetch and op", [&] {
        EXPECT(MPI_Fetch_and_op(&one, &old, MPI_INT64_T, target, sum, MPI_SUM, win) == 0);
        MPI_Win_flush(target, win);
    });
    timed(flavour, "accumulate", [&] {
        EXPECT(MPI_Accumulate(&one, 1, MPI_INT64_T, target, sum, 1, MPI_INT64_T, MPI_SUM, win) == 0);
        MPI_Win_flush(target, win);
    });
    // Each origin counts up what it finds, as often as it takes.
    timed(flavour, "compare and swap", [&] {
        int64_t expected = 0, seen = 0;
        do {
            expected = seen;
            const int64_t next = expected + 1;
            EXPECT(MPI_Compare_and_swap(&next, &expected, &seen, MPI_INT64_T, target,
                                        w.at(target, offsetof(Memory, swapped)), win) == 0);
            MPI_Win_flush(target, win);
        } while (seen != expected);
    });
    const int32_t own = 1000 + rank;
    int32_t back = 0;
    const MPI_Aint place = w.at(target, offsetof(Memory, places) + size_t(rank) * sizeof own);
    timed(flavour, "put", [&] {
        EXPECT(MPI_Put(&own, 1, MPI_INT32_T, target, place, 1, MPI_INT32_T, win) == 0);
        MPI_Win_flush(target, win);
    });
    timed(flavour, "get", [&] {
        EXPECT(MPI_Get(&back, 1, MPI_INT32_T, target, place, 1, MPI_INT32_T, win) == 0);
        MPI_Win_flush(target, win);
    });
    EXPECT(back == own);
    MPI_Win_unlock(target, win);

    // Every size-th byte, of two halves in turn: pieces at both ends, more than go in one call.
    const int share = int(sizeof(Memory::bytes)) / size;
    MPI_Datatype strided;
    MPI_Type_vector(share, 1, size, MPI_CHAR, &strided);
    MPI_Type_commit(&strided);
    std::vector<char> mine(size_t(share), char('a' + rank)), seen(mine.size());
    const MPI_Aint bytes = w.at(target, offsetof(Memory, bytes) + size_t(rank));
    MPI_Request request;
    MPI_Win_lock_all(0, win);
    EXPECT(MPI_Rput(mine.data(), share, MPI_CHAR, target, bytes, 1, strided, win, &request) == 0);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_flush_all(win);
    EXPECT(MPI_Rget(seen.data(), share, MPI_CHAR, target, bytes, 1, strided, win, &request) == 0);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT(seen == mine);
    std::vector<char> spread(sizeof(Memory::bytes));
    EXPECT(MPI_Get(spread.data(), 1, strided, target, bytes, 1, strided, win) == 0);
    MPI_Win_flush_local(target, win);
    for (size_t i = 0; i < size_t(share); i++) EXPECT(spread[i * size_t(size)] == mine[i]);
    MPI_Type_free(&strided);

    // More than fits in one step under the guard, with what was there.
    std::vector<double> add(std::size(Memory{}.numbers), 1.0), before(add.size(), -1.0);
    const int n = int(add.size());
    EXPECT(MPI_Get_accumulate(add.data(), n, MPI_DOUBLE, before.data(), n, MPI_DOUBLE, target,
                              w.at(target, offsetof(Memory, numbers)), n, MPI_DOUBLE, MPI_SUM, win) == 0);
    MPI_Win_flush(target, win);
    for (const double number : before) EXPECT(number >= 0 && number <= size - 1);
    // What is not the window's is refused at once.
    const MPI_Aint behind = w.at(target, sizeof(Memory) - 4);
    EXPECT(MPI_Put(&one, 1, MPI_INT64_T, target, behind, 1, MPI_INT64_T, win) == MPI_ERR_RMA_RANGE);
    MPI_Win_unlock_all(win);

    // One after the other, by the exclusive lock alone.
    for (int i = 0; i < 20; i++) {
        int64_t turns = 0;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
        MPI_Get(&turns, 1, MPI_INT64_T, target, w.at(target, offsetof(Memory, turns)), 1, MPI_INT64_T, win);
        MPI_Win_flush(target, win);
        turns++;
        MPI_Put(&turns, 1, MPI_INT64_T, target, w.at(target, offsetof(Memory, turns)), 1, MPI_INT64_T, win);
        MPI_Win_unlock(target, win);
    }
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
    MPI_Accumulate(&one, 1, MPI_INT64_T, target, w.at(target, offsetof(Memory, done)), 1, MPI_INT64_T, MPI_SUM, win);
    MPI_Win_unlock(target, win);
}

void reach_while_it_computes(const char* flavour) {
    Window w(flavour);
    MPI_Barrier(MPI_COMM_WORLD);
    const int target = size - 1;
    const int others = size - 1;
    if (rank != target) {
        operate(w, flavour, target);
    } else {
        EXPECT(compute_until(w.own->done, others));
        EXPECT(w.own->sum == 400 * others && w.own->swapped == 200 * others && w.own->turns == 20 * others);
        for (int i = 0; i < others; i++) EXPECT(w.own->places[i] == 1000 + i);
        for (const double number : w.own->numbers) EXPECT(number == others);
        for (size_t i = 0; i < size_t(sizeof(Memory::bytes)) / size_t(size) * size_t(size); i++)
            EXPECT(int(i) % size == target || w.own->bytes[i] == char('a' + int(i) % size));
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

// Its owner's operations on a word meet those of all others.
void meet_on_one_word(const char* flavour) {
    Window w(flavour);
    MPI_Barrier(MPI_COMM_WORLD);
    constexpr int kRounds = 2000;
    const int64_t one = 1;
    const MPI_Aint at = w.at(0, offsetof(Memory, sum));
    MPI_Win_lock_all(0, w.win);
    for (int i = 0; i < kRounds; i++) {
        MPI_Accumulate(&one, 1, MPI_INT64_T, 0, at, 1, MPI_INT64_T, MPI_SUM, w.win);
        MPI_Win_flush(0, w.win);
    }
    MPI_Win_unlock_all(w.win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) EXPECT(w.own->sum == int64_t{kRounds} * size);
    MPI_Barrier(MPI_COMM_WORLD);
}

// Attached memory comes and goes; only what is attached now is reached.
void attach_and_detach() {
    MPI_Win win;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    const int target = size - 1;
    std::vector<int64_t> own(64, 0);
    for (int round = 0; round < 50; round++) {
        auto at = MPI_Aint(reinterpret_cast<intptr_t>(&own[size_t(round)]));
        if (rank == target) EXPECT(MPI_Win_attach(win, &own[size_t(round)], sizeof(int64_t)) == MPI_SUCCESS);
        MPI_Bcast(&at, 1, MPI_AINT, target, MPI_COMM_WORLD);
        const int64_t one = 1;
        MPI_Win_lock_all(0, win);
        EXPECT(MPI_Accumulate(&one, 1, MPI_INT64_T, target, at, 1, MPI_INT64_T, MPI_SUM, win) == MPI_SUCCESS);
        EXPECT(MPI_Win_flush(target, win) == MPI_SUCCESS);
        int failed = MPI_Put(&one, 1, MPI_INT64_T, target, at + 8, 1, MPI_INT64_T, win);
        if (failed == MPI_SUCCESS) failed = MPI_Win_flush(target, win);
        EXPECT(failed == MPI_ERR_RMA_RANGE);
        MPI_Win_unlock_all(win);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == target) {
            EXPECT(own[size_t(round)] == size && own[size_t(round) + 1] == 0);
            EXPECT(MPI_Win_detach(win, &own[size_t(round)]) == MPI_SUCCESS);
        }
    }
    EXPECT(MPI_Win_free(&win) == MPI_SUCCESS);
}

// The last rank becomes another program. Nothing answers then: the origin is told, at once.
int lose_the_target(const char* self) {
    Window w("create");
    MPI_Barrier(MPI_COMM_WORLD);
    const int target = size - 1;
    if (rank == target) {
        ::execl(self, self, "--other", nullptr);
        ::_exit(3);
    }
    const int64_t one = 1;
    int64_t old = 0;
    MPI_Win_lock_all(MPI_MODE_NOCHECK, w.win);
    const auto deadline = Clock::now() + std::chrono::seconds(20);
    int error = MPI_SUCCESS;
    const MPI_Aint at = w.at(target, offsetof(Memory, sum));
    while (error == MPI_SUCCESS && Clock::now() < deadline)
        error = MPI_Put(&one, 1, MPI_INT64_T, target, at, 1, MPI_INT64_T, w.win);
    EXPECT(error == MPIX_ERR_PROC_FAILED);
    EXPECT(MPI_Get(&old, 1, MPI_INT64_T, target, at, 1, MPI_INT64_T, w.win) == MPIX_ERR_PROC_FAILED);
    EXPECT(MPI_Fetch_and_op(&one, &old, MPI_INT64_T, target, at, MPI_SUM, w.win) == MPIX_ERR_PROC_FAILED);
    EXPECT(MPI_Compare_and_swap(&one, &old, &old, MPI_INT64_T, target, at, w.win) == MPIX_ERR_PROC_FAILED);
    std::puts(wrong == 0 ? "No Errors" : "wrong");
    std::fflush(stdout);
    ::_exit(wrong != 0);
}

}  // namespace

int main(int argc, char** argv) {
    const std::string mode = argc > 1 ? argv[1] : "";
    if (mode == "--other") return static_cast<int>(::sleep(3));
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (mode == "exec") std::signal(SIGUSR1, SIG_IGN);  // by which the launcher tells that a process has ended
    if (mode == "exec") return lose_the_target(argv[0]);
    std::vector<const char*> flavours = {"create", "dynamic", "allocate"};
    if (mode == "reached") flavours.assign(argv + 2, argv + argc);
    for (const char* flavour : flavours) {
        if (size > 1) reach_while_it_computes(flavour);
        meet_on_one_word(flavour);
    }
    attach_and_detach();
    return report();
}
