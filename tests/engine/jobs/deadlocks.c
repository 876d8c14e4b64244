/* SPDX-License-Identifier: BSD-2-Clause */
/* Jobs that never end by themselves, each in another way; and one whose ranks wait for one that computes. Each rank says
 * its process number first. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void* compute(void* unused) {
    sleep(600);
    return unused;
}

int main(int argc, char** argv) {
    int rank, size, x = 0, y = 0;
    pthread_t other;
    if (strcmp(argv[1], "threads") == 0)
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &x);
    else
        MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0) {
        printf("%d\n", (int)getpid());
        fflush(stdout);
    }
    const char* how = argv[1];
    if (strcmp(how, "receives") == 0) { /* two receive from each other first; the third waits for one of them */
        const int from = rank == 0 ? 1 : 0;
        MPI_Recv(&x, 1, MPI_INT, from, 70 + rank, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (strcmp(how, "ring") == 0) { /* synchronous sends around */
        MPI_Ssend(&x, 1, MPI_INT, (rank + 1) % size, 5, MPI_COMM_WORLD);
    } else if (strcmp(how, "barrier") == 0) { /* one receives, the others are in a collective call */
        if (rank == 0)
            MPI_Recv(&x, 1, MPI_INT, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
            MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    } else if (strcmp(how, "any") == 0) { /* all receive from anywhere */
        MPI_Comm named;
        MPI_Comm_dup(MPI_COMM_WORLD, &named);
        MPI_Comm_set_name(named, "the ring");
        MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, named, MPI_STATUS_IGNORE);
    } else if (strcmp(how, "finalize") == 0) { /* one waits for a message of those that have finished */
        if (rank == 0) MPI_Probe(1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (strcmp(how, "threads") == 0) { /* no deadlock: another thread of rank 0 may still send */
        if (rank == 0) pthread_create(&other, NULL, compute, NULL);
        MPI_Recv(&x, 1, MPI_INT, (rank + 1) % size, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (strcmp(how, "computes") == 0) { /* no deadlock: rank 0 comes later */
        if (rank == 0) sleep(600);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
