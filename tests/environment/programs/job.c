/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * environment_job: two ranks of MPI exchange messages of 64 bytes and 64 KiB, write one-sidedly and reduce. Each rank has a
 * status page of its own: ENVIRONMENT_STATUS with ".RANK" behind it (PMI_RANK tells which).
 */
#include <mpi.h>

#include "status.h"

static void wrong(const char* what) {
    status_result(what);
    fprintf(stderr, "%s\n", what);
    _exit(5);
}

static void exchange(int rank, int bytes, int times) {
    static unsigned char out[65536], in[65536];
    for (int i = 0; i < times; ++i) {
        memset(out, i + rank, (size_t)bytes);
        if (rank == 0) {
            CALL(MPI_Send(out, bytes, MPI_BYTE, 1, 7, MPI_COMM_WORLD));
            CALL(MPI_Recv(in, bytes, MPI_BYTE, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        } else {
            CALL(MPI_Recv(in, bytes, MPI_BYTE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CALL(MPI_Send(out, bytes, MPI_BYTE, 0, 7, MPI_COMM_WORLD));
        }
        for (int k = 0; k < bytes; ++k)
            if (in[k] != (unsigned char)(i + 1 - rank)) wrong("wrong: other bytes came than were sent");
    }
}

int main(int count, char** words) {
    static char path[4096];
    const char* base = getenv("ENVIRONMENT_STATUS");
    const char* place = getenv("PMI_RANK");
    if (base != NULL) {
        snprintf(path, sizeof path, "%s.%s", base, place != NULL ? place : "0");
        setenv("ENVIRONMENT_STATUS", path, 1);
    }
    status_open();
    int rank, size;
    CALL(MPI_Init(&count, &words));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2) wrong("wrong: not two ranks");
    exchange(rank, 64, 200);
    exchange(rank, 65536, 50);

    int* window_memory;
    MPI_Win window;
    CALL(MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window_memory, &window));
    *window_memory = -1;
    CALL(MPI_Win_fence(0, window));
    CALL(MPI_Put(&rank, 1, MPI_INT, 1 - rank, 0, 1, MPI_INT, window));
    CALL(MPI_Win_fence(0, window));
    if (*window_memory != 1 - rank) wrong("wrong: MPI_Put");
    CALL(MPI_Win_free(&window));

    int sum = 0, one = rank + 1;
    CALL(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    if (sum != 3) wrong("wrong: MPI_Allreduce");
    CALL(MPI_Finalize());
    status_result("works");
    return 0;
}
