// SPDX-License-Identifier: BSD-2-Clause
// One-sided operations on a target that computes: it makes no MPI call until it sees in its own memory that all the
// others have done theirs, each kind of operation in each kind of window, with locks, and with the right results. Where
// a target's help were needed it would wait until its deadline. Rank 0 prints how long an operation takes.
// `reached FLAVOUR...`: of these kinds only (create, dynamic, allocate).
// `nic FLAVOUR...`: the same by the NIC, and by nothing else: without accumulates of many elements, which are messages.
// `exec`: the last rank becomes another program, in which nothing may be written; the others are told.
#include <poll.h>
#include <sys/syscall.h>
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

#include "../../eventually.hpp"
#include "check.hpp"

namespace {

using Clock = std::chrono::steady_clock;

int rank, size;
bool by_nic;
int runs = 200;    // of each operation that is timed
int limit_s = 20;  // for all of them

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
        if (by_nic) expect_nic();
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
    void expect_nic() const {
        MPI_Info info;
        MPI_Win_get_info(win, &info);
        for (const char* key : {"cmpi_win_access", "cmpi_win_atomics"}) {
            char way[MPI_MAX_INFO_VAL + 1] = "";
            int there = 0;
            MPI_Info_get(info, key, MPI_MAX_INFO_VAL, way, &there);
            EXPECT(there && std::strstr(way, "nic") != nullptr && std::strstr(way, "messages") == nullptr);
        }
        MPI_Info_free(&info);
    }

    const bool dynamic_;
    std::vector<char> own_;
    std::vector<MPI_Aint> bases_;
};

// Without any MPI call. False: the value has not come for too long.
bool compute_until(const int64_t& word, int64_t value) {
    const auto is_there = [&] { return std::atomic_ref<int64_t>(const_cast<int64_t&>(word)).load() == value; };
    return viaduct::tests::eventually("the value", is_there, {.limit = std::chrono::seconds(limit_s)}).holds;
}

// The median of some runs, told where rank 0 is the only origin.
template <typename Operation>
void timed(const char* flavour, const char* what, Operation&& operation) {
    std::vector<double> us(static_cast<size_t>(runs));
    for (double& one : us) {
        const auto start = Clock::now();
        operation();
        one = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
    }
    const auto middle = us.begin() + runs / 2;
    std::nth_element(us.begin(), middle, us.end());
    if (size == 2) std::printf("%s: %s %.2f us\n", flavour, what, *middle);
}

// More than one access of a NIC takes.
int share_of_bytes() { return by_nic ? 4000 : int(sizeof(Memory::bytes)) / size; }

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
    const int share = share_of_bytes();
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
    const int n = by_nic ? 1 : int(add.size());
    EXPECT(MPI_Get_accumulate(add.data(), n, MPI_DOUBLE, before.data(), n, MPI_DOUBLE, target,
                              w.at(target, offsetof(Memory, numbers)), n, MPI_DOUBLE, MPI_SUM, win) == 0);
    MPI_Win_flush(target, win);
    for (int i = 0; i < n; i++) EXPECT(before[size_t(i)] >= 0 && before[size_t(i)] <= size - 1);
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
        EXPECT(w.own->sum == 2 * runs * others && w.own->swapped == runs * others && w.own->turns == 20 * others);
        for (int i = 0; i < others; i++) EXPECT(w.own->places[i] == 1000 + i);
        const size_t n = by_nic ? 1 : std::size(w.own->numbers);
        for (size_t i = 0; i < n; i++) EXPECT(w.own->numbers[i] == others);
        for (int i = 0; i < share_of_bytes() * size; i++)
            EXPECT(i % size == target || w.own->bytes[i] == char('a' + i % size));
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

// Its owner's operations on a word meet those of all others.
void meet_on_one_word(const char* flavour) {
    Window w(flavour);
    MPI_Barrier(MPI_COMM_WORLD);
    const int rounds = by_nic ? 200 : 2000;
    const int64_t one = 1;
    const MPI_Aint at = w.at(0, offsetof(Memory, sum));
    MPI_Win_lock_all(0, w.win);
    for (int i = 0; i < rounds; i++) {
        MPI_Accumulate(&one, 1, MPI_INT64_T, 0, at, 1, MPI_INT64_T, MPI_SUM, w.win);
        MPI_Win_flush(0, w.win);
    }
    MPI_Win_unlock_all(w.win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) EXPECT(w.own->sum == int64_t{rounds} * size);
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

// The other program, until rank 0 has ended: the launcher ends all when a process has.
int outlast(pid_t first) {
    const auto fd = static_cast<int>(::syscall(SYS_pidfd_open, first, 0));
    pollfd ended{fd, POLLIN, 0};
    if (fd >= 0) ::poll(&ended, 1, -1);
    return 0;
}

// The last rank becomes another program. Nothing answers then: the origin is told, at once.
int lose_the_target(const char* self) {
    Window w("create");
    int first = ::getpid();
    MPI_Bcast(&first, 1, MPI_INT, 0, MPI_COMM_WORLD);
    const int target = size - 1;
    // The others may still need messages of a barrier that the target has left; after this they need none.
    int word = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == target) {
        for (int other = 0; other < target; other++)
            MPI_Recv(&word, 1, MPI_INT, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        ::execl(self, self, "--other", std::to_string(first).c_str(), nullptr);
        ::_exit(3);
    }
    MPI_Send(&word, 1, MPI_INT, target, 1, MPI_COMM_WORLD);
    const int64_t one = 1;
    int64_t old = 0;
    MPI_Win_lock_all(MPI_MODE_NOCHECK, w.win);
    int error = MPI_SUCCESS;
    const MPI_Aint at = w.at(target, offsetof(Memory, sum));
    // Told by the operation, or by the flush behind it.
    const auto flushed = [&](int begun) { return begun != MPI_SUCCESS ? begun : MPI_Win_flush(target, w.win); };
    const auto is_told = [&] {
        error = flushed(MPI_Put(&one, 1, MPI_INT64_T, target, at, 1, MPI_INT64_T, w.win));
        return error != MPI_SUCCESS;
    };
    (void)viaduct::tests::eventually("the loss", is_told, {.limit = std::chrono::seconds(20)});
    EXPECT(error == MPIX_ERR_PROC_FAILED);
    EXPECT(flushed(MPI_Get(&old, 1, MPI_INT64_T, target, at, 1, MPI_INT64_T, w.win)) == MPIX_ERR_PROC_FAILED);
    EXPECT(flushed(MPI_Fetch_and_op(&one, &old, MPI_INT64_T, target, at, MPI_SUM, w.win)) == MPIX_ERR_PROC_FAILED);
    EXPECT(flushed(MPI_Fetch_and_op(&one, &old, MPI_INT64_T, target, at, MPI_PROD, w.win)) == MPIX_ERR_PROC_FAILED);
    EXPECT(flushed(MPI_Compare_and_swap(&one, &old, &old, MPI_INT64_T, target, at, w.win)) == MPIX_ERR_PROC_FAILED);
    std::puts(wrong == 0 ? "No Errors" : "wrong");
    std::fflush(stdout);
    ::_exit(wrong != 0);
}

}  // namespace

int main(int argc, char** argv) {
    const std::string mode = argc > 1 ? argv[1] : "";
    if (mode == "--other") return outlast(std::atoi(argv[2]));
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (mode == "exec") std::signal(SIGUSR1, SIG_IGN);  // by which the launcher tells that a process has ended
    if (mode == "exec") return lose_the_target(argv[0]);
    std::vector<const char*> flavours = {"create", "dynamic", "allocate"};
    by_nic = mode == "nic";
    if (by_nic) {
        // By a thread of the target's provider, which waits for a processor as others do.
        runs = 20;
        limit_s = 90;
    }
    if (mode == "reached" || by_nic) flavours.assign(argv + 2, argv + argc);
    for (const char* flavour : flavours) {
        if (size > 1) reach_while_it_computes(flavour);
        meet_on_one_word(flavour);
    }
    if (!by_nic) attach_and_detach();
    return report();
}
