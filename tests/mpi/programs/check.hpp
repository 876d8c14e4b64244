// SPDX-License-Identifier: BSD-2-Clause
// What the test programs of MPI share: they count what is wrong, and rank 0 says "No Errors" when that is nothing
// anywhere.
#pragma once

#include <mpi.h>

#include <cstdio>

inline int wrong = 0;

inline int rank_in(MPI_Comm comm) {
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    return rank;
}

inline int size_of(MPI_Comm comm) {
    int size = 0;
    MPI_Comm_size(comm, &size);
    return size;
}

inline void expect(bool holds, const char* what, int line) {
    if (!holds && ++wrong <= 5) {
        std::printf("rank %d line %d: %s\n", rank_in(MPI_COMM_WORLD), line, what);
    }
}

#define EXPECT(condition) expect(condition, #condition, __LINE__)

// For jobs that end together. Others end with `wrong == 0`.
inline int report() {
    int all = 0;
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank_in(MPI_COMM_WORLD) == 0 && all == 0) {
        std::puts("No Errors");
    }
    MPI_Finalize();
    return all != 0;
}
