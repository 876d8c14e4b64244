// SPDX-License-Identifier: BSD-2-Clause
// What the test programs of MPI share: they count what is wrong, and rank 0 says "No Errors" when that is nothing
// anywhere.
#pragma once

#include <mpi.h>

#include <cstdio>

inline int wrong = 0;

inline void expect(bool holds, const char* what, int line) {
    if (!holds && ++wrong <= 5) {
        int rank = -1;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        std::printf("rank %d line %d: %s\n", rank, line, what);
    }
}

#define EXPECT(condition) expect(condition, #condition, __LINE__)

inline int report() {
    int all = 0, rank = 0;
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0 && all == 0) {
        std::puts("No Errors");
    }
    MPI_Finalize();
    return all != 0;
}
