/* SPDX-License-Identifier: BSD-2-Clause */
/* Jobs that never end by themselves, each in another way; and some without a deadlock. Rank 0 says its process number
 * first, and rank 1 where it matters. */
#include <mpi.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void* compute(void* unused) {
    while (pause() != 0) { /* until the job is ended */
    }
    return unused;
}

static void keep_asking(int rank, long times) { /* each rank by another call; times 0: until the job is ended */
    int x[2], flag = 0, index;
    MPI_Request requests[2];
    MPI_Irecv(&x[0], 1, MPI_INT, (rank + 1) % 3, 90 + rank, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&x[1], 1, MPI_INT, (rank + 2) % 3, 90 + rank, MPI_COMM_WORLD, &requests[1]);
    for (long i = 0; !flag && (times == 0 || i < times); i++) {
        if (rank == 0)
            MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
        else if (rank == 1)
            MPI_Iprobe(2, 89, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        else
            MPI_Testany(2, requests, &index, &flag, MPI_STATUS_IGNORE);
    }
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
    } else if (strcmp(how, "fence") == 0 || strcmp(how, "fence-late") == 0) { /* a fence beside a receive, or a computation */
        MPI_Win window;
        MPI_Win_create(&x, sizeof x, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
        if (rank == 0) {
            if (strcmp(how, "fence-late") == 0) compute(NULL);
            MPI_Recv(&y, 1, MPI_INT, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        MPI_Win_fence(0, window);
        MPI_Win_free(&window);
    } else if (strcmp(how, "lock") == 0) { /* the holder of a lock receives from the one that waits for it */
        MPI_Win window;
        MPI_Win_create(&x, sizeof x, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
        if (rank != 0) MPI_Recv(&y, 1, MPI_INT, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, window);
        for (y = 1; rank == 0 && y < size; y++) MPI_Send(&y, 1, MPI_INT, y, 8, MPI_COMM_WORLD);
        MPI_Recv(&y, 1, MPI_INT, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (strcmp(how, "lock-held") == 0) { /* no deadlock: the holder of a lock computes */
        MPI_Win window;
        MPI_Win_create(&x, sizeof x, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
        if (rank != 0) MPI_Recv(&y, 1, MPI_INT, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, window);
        for (y = 1; rank == 0 && y < size; y++) MPI_Send(&y, 1, MPI_INT, y, 8, MPI_COMM_WORLD);
        compute(NULL);
    } else if (strcmp(how, "flush-late") == 0) { /* no deadlock: the target of operations computes */
        MPI_Win window;
        MPI_Win_create(&x, sizeof x, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
        if (rank == 0) compute(NULL);
        MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
        do MPI_Put(&y, 1, MPI_INT, 0, 0, 1, MPI_INT, window); /* it serves some of them before it computes */
        while (MPI_Win_flush(0, window) == MPI_SUCCESS);
    } else if (strcmp(how, "asks") == 0) { /* no deadlock: programs that ask may do something else */
        keep_asking(rank, 0);
    } else if (strcmp(how, "asked") == 0) { /* rank 0 has asked, and computes */
        if (rank == 0) {
            keep_asking(rank, 20000);
            compute(NULL);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    } else if (strcmp(how, "finalize") == 0) { /* one waits for a message of those that have finished */
        if (rank == 0) MPI_Probe(1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (strcmp(how, "threads") == 0) { /* no deadlock: another thread of rank 0 may still send */
        if (rank == 0) pthread_create(&other, NULL, compute, NULL);
        MPI_Recv(&x, 1, MPI_INT, (rank + 1) % size, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (strcmp(how, "stopped") == 0) { /* no deadlock: what rank 1 waits for comes while it is stopped */
        if (rank == 1) {
            x = (int)getpid();
            MPI_Send(&x, 1, MPI_INT, 0, 80, MPI_COMM_WORLD);
            MPI_Recv(&x, 1, MPI_INT, 0, 81, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(&x, 1, MPI_INT, 0, 82, MPI_COMM_WORLD);
        } else if (rank == 0) {
            MPI_Recv(&x, 1, MPI_INT, 1, 80, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            printf("%d\n", x);
            fflush(stdout);
            while (access(argv[2], F_OK) != 0) poll(NULL, 0, 1);
            MPI_Send(&x, 1, MPI_INT, 1, 81, MPI_COMM_WORLD);
            MPI_Recv(&x, 1, MPI_INT, 1, 82, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    } else if (strcmp(how, "computes") == 0) { /* no deadlock: rank 0 comes later */
        if (rank == 0) compute(NULL);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
