/* SPDX-License-Identifier: BSD-2-Clause */
/* One file written and read by all ranks at once: file NAME. Each rank has every size-th number of it. */
#include <mpi.h>
#include <stdio.h>

#define NUMBERS 1000 /* of each rank */

int main(int argc, char **argv) {
    int numbers[NUMBERS], rank, size, wrong = 0, all = 0;
    MPI_Datatype every;
    MPI_File file;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 2) {
        if (rank == 0) fprintf(stderr, "usage: file NAME\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }

    /* One number, and the gap of the other ranks' numbers behind it. */
    MPI_Type_create_resized(MPI_INT, 0, (MPI_Aint)(size * sizeof(int)), &every);
    MPI_Type_commit(&every);

    /* Files return errors where everything else ends the job. */
    if (MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_File_set_view(file, (MPI_Offset)(rank * sizeof(int)), MPI_INT, every, "native", MPI_INFO_NULL);

    /* Collective accesses put the small pieces of all ranks together into few large ones. */
    for (int i = 0; i < NUMBERS; i++) numbers[i] = i * size + rank;
    MPI_File_write_at_all(file, 0, numbers, NUMBERS, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    for (int i = 0; i < NUMBERS; i++) numbers[i] = -1;
    MPI_File_read_at_all(file, 0, numbers, NUMBERS, MPI_INT, MPI_STATUS_IGNORE);
    for (int i = 0; i < NUMBERS; i++) wrong += numbers[i] != i * size + rank;
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("%d numbers in %s, %d wrong\n", NUMBERS * size, argv[1], all);

    MPI_File_close(&file);
    MPI_Type_free(&every);
    MPI_Finalize();
    return all != 0;
}
