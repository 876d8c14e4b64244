/* SPDX-License-Identifier: BSD-2-Clause */
/* Heat in a rod that is cut among the ranks: in each step neighbours exchange their edges while the inner part is
 * computed. The heat that flows in at the left end comes out in the sum of all. */
#include <mpi.h>
#include <stdio.h>

#define CELLS 64 /* of each rank */
#define STEPS 500

int main(int argc, char **argv) {
    double now[CELLS + 2] = {0}, next[CELLS + 2] = {0}, own = 0, all = 0;
    const int periods = 0;
    int size, rank, left, right, dims = 0;
    MPI_Comm rod;

    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);

    /* A grid of one dimension has the neighbours; at its ends they are MPI_PROC_NULL, and messages are nothing. */
    MPI_Dims_create(size, 1, &dims);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &dims, &periods, 1, &rod);
    MPI_Comm_rank(rod, &rank);
    MPI_Cart_shift(rod, 0, 1, &left, &right);

    for (int step = 0; step < STEPS; step++) {
        MPI_Request requests[4];
        if (left == MPI_PROC_NULL) now[0] = 1; /* the fire */
        MPI_Irecv(&now[0], 1, MPI_DOUBLE, left, 0, rod, &requests[0]);
        MPI_Irecv(&now[CELLS + 1], 1, MPI_DOUBLE, right, 1, rod, &requests[1]);
        MPI_Isend(&now[CELLS], 1, MPI_DOUBLE, right, 0, rod, &requests[2]);
        MPI_Isend(&now[1], 1, MPI_DOUBLE, left, 1, rod, &requests[3]);
        for (int i = 2; i < CELLS; i++) next[i] = now[i] + 0.25 * (now[i - 1] - 2 * now[i] + now[i + 1]);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        for (int i = 1; i <= CELLS; i += CELLS - 1) next[i] = now[i] + 0.25 * (now[i - 1] - 2 * now[i] + now[i + 1]);
        for (int i = 1; i <= CELLS; i++) now[i] = next[i];
    }
    for (int i = 1; i <= CELLS; i++) own += now[i];
    MPI_Reduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, 0, rod);
    if (rank == 0) printf("%d ranks, %d steps: heat %.6f\n", size, STEPS, all);
    MPI_Comm_free(&rod);
    MPI_Finalize();
    return 0;
}
