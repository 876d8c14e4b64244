/* SPDX-License-Identifier: BSD-2-Clause */
/* Ranks that find to each other late: rank 0 computes for three seconds, and the others send to it meanwhile, so that their
 * connections wait there. It prints what the messages then took. */
#include <unistd.h>

#include "check.h"

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    usleep(rank == 0 ? 3000 * 1000 : rank * 400 * 1000); /* sleeps: the rank computes */
    const double begun = MPI_Wtime();
    for (int i = 1; rank == 0 && i < 2 * size - 1; i++) {
        int in = -1;
        MPI_Recv(&in, 1, MPI_INT, (i + 1) / 2, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(in == (i + 1) / 2);
    }
    if (rank != 0) {
        MPI_Send(&rank, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
        MPI_Ssend(&rank, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
    }
    for (int other = 0; other < size; other++) {
        int out = rank * 100 + other, in = -1;
        if (other == rank) continue;
        MPI_Sendrecv(&out, 1, MPI_INT, other, 1, &in, 1, MPI_INT, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(in == other * 100 + rank);
    }
    if (rank == 0) fprintf(stderr, "took %.3f s\n", MPI_Wtime() - begun);
    return end_check();
}
