// SPDX-License-Identifier: BSD-2-Clause
// Whether messages move on while the program computes: `thread` where they have to (CMPI_PROGRESS=thread), `calls`
// where they cannot. Rank 1 computes without a call of MPI: with the thread until rank 0 has got what needs
// rank 1, which a word of shared memory says; without it for a fixed time, in which rank 0 gets nothing.
#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "../../eventually.hpp"
#include "check.hpp"
#include "core/process/allowed_processors.hpp"
#include "core/process/cpu_quota.hpp"

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLong = 16 << 20;
constexpr std::chrono::seconds kTooLong(20);
constexpr double kComputes = 0.3;   // without the thread
constexpr int kMixed = 300;

int rank, size;
bool by_thread;
std::atomic<int>* served;    // how often rank 0 has got what it asked for
std::atomic<int>* computes;  // as often: rank 1 calls nothing from here on

double now() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

void compute(double seconds) {
    for (const double end = now() + seconds; now() < end;) {
    }
}

bool all_are(const std::vector<char>& bytes, char value) {
    return bytes[0] == value && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

// Over via the receiver moves a long message itself where ranks outnumber processors
// (mpi-adi/transport/via/transport.cpp).
bool receiver_moves() {
    const char* const protocol = std::getenv("CMPI_PROTOCOL");
    if (protocol == nullptr || std::strcmp(protocol, "via") != 0) return false;
    const double granted = viaduct::own_cpu_quota().processors;
    return viaduct::allowed_processor_count() < size || (granted > 0 && granted < size);
}

// Rank 0 does its part at once, rank 1 computes first: it has left the barrier, in which it would move messages on.
template <class Part0, class Part1>
void beside(const char* what, bool waits_without_thread, Part0 part0, Part1 part1) {
    const int before = served->load();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        while (computes->load() == before) ::sched_yield();
        const double start = now();
        part0();
        served->store(before + 1);
        std::printf("%-40s %7.1f ms\n", what, (now() - start) * 1e3);
    } else if (rank == 1) {
        computes->store(before + 1);
        const auto is_served = [&] { return served->load() == before + 1; };
        if (by_thread)
            EXPECT(viaduct::tests::eventually("rank 0 has got its data", is_served, {.limit = kTooLong}).holds);
        else
            compute(kComputes);
        if (!by_thread && waits_without_thread) EXPECT(served->load() == before);
        part1();
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

void long_messages() {
    std::vector<char> data(kLong, char(rank + 1));
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == 1) MPI_Irecv(data.data(), kLong, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &request);
    beside(
        "a long send to a busy rank", true, [&] { MPI_Send(data.data(), kLong, MPI_CHAR, 1, 1, MPI_COMM_WORLD); },
        [&] {
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            EXPECT(all_are(data, char(1)));
        });
    data.assign(kLong, char(rank + 3));
    if (rank == 1) MPI_Isend(data.data(), kLong, MPI_CHAR, 0, 2, MPI_COMM_WORLD, &request);
    beside(
        "a long receive from a rank that computes", !receiver_moves(),
        [&] { MPI_Recv(data.data(), kLong, MPI_CHAR, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE); },
        [&] { MPI_Wait(&request, MPI_STATUS_IGNORE); });
    if (rank == 0) EXPECT(all_are(data, char(4)));
    // The same by a persistent request.
    if (rank == 1) {
        MPI_Recv_init(data.data(), kLong, MPI_CHAR, 0, 3, MPI_COMM_WORLD, &request);
        MPI_Start(&request);
    }
    beside(
        "a long send to a persistent receive", true,
        [&] { MPI_Send(data.data(), kLong, MPI_CHAR, 1, 3, MPI_COMM_WORLD); },
        [&] {
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            MPI_Request_free(&request);
        });
}

void collective() {
    int in = rank + 1;
    int out = 0;
    MPI_Request request;
    MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    // Without the thread a short one may be over before any rank computes.
    const auto end = [&] { MPI_Wait(&request, MPI_STATUS_IGNORE); };
    beside("MPI_Iallreduce with a rank that computes", false, end, end);
    if (rank > 1) end();
    EXPECT(out == size * (size + 1) / 2);
}

// The target has no part in it but progress: with CMPI_WINDOW_ACCESS=messages it has to answer.
void one_sided() {
    std::vector<int> memory(1024, rank + 10);
    std::vector<int> got(1024);
    MPI_Win window;
    MPI_Win_create(memory.data(), MPI_Aint(memory.size() * sizeof(int)), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
                   &window);
    beside(
        "MPI_Get from a rank that computes", true,
        [&] {
            MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window);
            MPI_Get(got.data(), 1024, MPI_INT, 1, 0, 1024, MPI_INT, window);
            MPI_Win_unlock(1, window);
            EXPECT(got.front() == 11 && got.back() == 11);
        },
        [] {});
    MPI_Win_free(&window);
}

// Calls of all kinds beside the thread: nothing is lost, mixed up or late for ever.
void mixed() {
    if (rank > 1) return;
    std::vector<char> out(1 << 20);
    std::vector<char> in;
    for (int i = 0; i < kMixed; i++) {
        const int bytes = 1 << i % 21;
        std::memset(out.data(), i + rank, size_t(bytes));
        MPI_Request both[2];
        in.assign(size_t(bytes), char(i + 77));
        MPI_Irecv(in.data(), bytes, MPI_CHAR, 1 - rank, i, MPI_COMM_WORLD, &both[0]);
        MPI_Isend(out.data(), bytes, MPI_CHAR, 1 - rank, i, MPI_COMM_WORLD, &both[1]);
        if (i % 3 == 0) compute(i % 2 * 0.002);
        int done = 0;
        if (i % 2 == 0)
            while (done == 0) MPI_Testall(2, both, &done, MPI_STATUSES_IGNORE);
        else
            MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
        EXPECT(all_are(in, char(i + 1 - rank)));
    }
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    by_thread = argc > 1 && std::strcmp(argv[1], "thread") == 0;
    MPI_Win shared;
    MPI_Win_allocate_shared(rank == 0 ? 2 * sizeof *served : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &served, &shared);
    MPI_Aint bytes = 0;
    int unit = 0;
    MPI_Win_shared_query(shared, 0, &bytes, &unit, &served);
    computes = served + 1;
    long_messages();
    collective();
    one_sided();
    mixed();
    MPI_Win_free(&shared);
    return report();
}
