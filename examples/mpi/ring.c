/* SPDX-License-Identifier: BSD-2-Clause */
/* A number goes around: each rank adds its own and passes it on. Errors come back as codes and are told in words. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void must(int code) {
    char text[MPI_MAX_ERROR_STRING];
    int length;

    if (code == MPI_SUCCESS) return;
    MPI_Error_string(code, text, &length); /* the call, its arguments, and which of them is wrong */
    fprintf(stderr, "%s\n", text);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv) {
    int rank, size, sum = 0;
    MPI_Status status;

    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* otherwise an error ends the job by itself */
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);

    /* Rank 0 begins, and gets the sum at the end. With one rank, left and right are the rank itself. */
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    if (rank == 0) must(MPI_Send(&rank, 1, MPI_INT, right, 0, MPI_COMM_WORLD));
    must(MPI_Recv(&sum, 1, MPI_INT, left, 0, MPI_COMM_WORLD, &status));
    if (rank != 0) {
        sum += rank;
        must(MPI_Send(&sum, 1, MPI_INT, right, 0, MPI_COMM_WORLD));
    } else {
        printf("the sum of %d ranks is %d, from rank %d\n", size, sum, status.MPI_SOURCE);
        if (sum != size * (size - 1) / 2) MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return 0;
}
