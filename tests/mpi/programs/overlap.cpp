// SPDX-License-Identifier: BSD-2-Clause
// How much of a message's time is hidden behind computing: two processes exchange a message of each size and compute
// meanwhile, on the processor that the first argument names (all processes on that one; none: where they may).
//
//     mpiexec -n 2 overlap [PROCESSOR [ROUNDS]]
//
// Of each size: the time of the exchange alone, of the computing alone, of both begun together, and
// 1 - (together - computing) / exchange. Medians.
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

int rank;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// A fixed amount of work, not of time: both processes may share a processor.
uint64_t work(uint64_t steps) {
    uint64_t x = steps | 1;
    for (uint64_t i = 0; i < steps; i++) x = x * 6364136223846793005u + 1442695040888963407u;
    return x;
}
volatile uint64_t sink;

double median(std::vector<double> all) {
    std::nth_element(all.begin(), all.begin() + long(all.size() / 2), all.end());
    return all[all.size() / 2];
}

// Median over rounds of the slower one's time from a barrier to the end of the exchange and the work.
double timed(std::vector<char>& out, std::vector<char>& in, int bytes, uint64_t steps, int rounds) {
    std::vector<double> all;
    for (int i = 0; i < rounds; i++) {
        MPI_Request both[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = now();
        if (bytes != 0) {
            MPI_Irecv(in.data(), bytes, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, &both[0]);
            MPI_Isend(out.data(), bytes, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, &both[1]);
        }
        if (steps != 0) sink = work(steps);
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
        double took = now() - start;
        MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        all.push_back(took);
    }
    return median(std::move(all));
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2) {
        std::fprintf(stderr, "two processes are needed\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const int rounds = argc > 2 ? std::atoi(argv[2]) : 15;
    if (argc > 1) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(size_t(std::atoi(argv[1])), &one);
        if (::sched_setaffinity(0, sizeof one, &one) != 0) {
            std::perror("sched_setaffinity");
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
    }
    std::vector<char> out(64 << 20, char(rank));
    std::vector<char> in(64 << 20);
    const double begun = now();
    sink = work(20'000'000);
    double steps_per_second = 20'000'000 / (now() - begun);
    MPI_Bcast(&steps_per_second, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (rank == 0) std::printf("%10s %12s %12s %12s %9s\n", "bytes", "exchange us", "compute us", "both us", "overlap");
    for (int bytes = 1 << 20; bytes <= 64 << 20; bytes *= 4) {
        (void)timed(out, in, bytes, 0, 3);
        const double exchange = timed(out, in, bytes, 0, rounds);
        const auto steps = uint64_t(2 * exchange * steps_per_second);
        const double computing = timed(out, in, 0, steps, rounds);
        const double together = timed(out, in, bytes, steps, rounds);
        if (rank == 0)
            std::printf("%10d %12.1f %12.1f %12.1f %8.0f%%\n", bytes, exchange * 1e6, computing * 1e6, together * 1e6,
                        100 * (1 - (together - computing) / exchange));
    }
    MPI_Finalize();
    return 0;
}
