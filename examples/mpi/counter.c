/* SPDX-License-Identifier: BSD-2-Clause */
/* Work that the ranks take from a common counter in the memory of rank 0, one-sided: rank 0 does nothing for it. */
#include <mpi.h>
#include <stdio.h>

#define ITEMS 1000

int main(int argc, char **argv) {
    int rank, size, taken = 0, sum = 0, *counter = NULL;
    MPI_Win window;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);

    /* Memory that MPI allocates is reached fastest. Only rank 0 brings some. */
    MPI_Win_allocate(rank == 0 ? sizeof(int) : 0, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &counter, &window);
    if (rank == 0) *counter = 0;
    MPI_Win_fence(0, window); /* no rank counts before that is written */
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);

    MPI_Win_lock_all(0, window);
    for (;;) {
        const int one = 1;
        int item;
        MPI_Fetch_and_op(&one, &item, MPI_INT, 0, 0, MPI_SUM, window);
        MPI_Win_flush(0, window); /* now `item` is there */
        if (item >= ITEMS) break;
        taken++; /* here the item would be worked on */
    }
    MPI_Win_unlock_all(window);

    MPI_Reduce(&taken, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%d items were taken by %d ranks\n", sum, size);
        if (sum != ITEMS) MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
