/* SPDX-License-Identifier: BSD-2-Clause */
/* MPI_THREAD_MULTIPLE: several threads of each rank talk to the same threads of the next one, each with tags of its own;
 * one more thread waits all the while for a message that comes last. */
#include <pthread.h>

#include "check.h"

enum { THREADS = 3, ROUNDS = 200 };

static void* talk(void* argument) {
    const int me = (int)(intptr_t)argument;
    const int next = (rank + 1) % size, last = (rank + size - 1) % size;
    for (int i = 0; i < ROUNDS; i++) {
        int out[50], in[50];
        MPI_Status status;
        for (int k = 0; k < 50; k++) out[k] = rank * 1000 + me * 100 + i + k;
        if (i % 3 == 0) {
            MPI_Request requests[2];
            MPI_Irecv(in, 50, MPI_INT, last, me, MPI_COMM_WORLD, &requests[0]);
            MPI_Isend(out, 50, MPI_INT, next, me, MPI_COMM_WORLD, &requests[1]);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        } else {
            MPI_Sendrecv(out, 50, MPI_INT, next, me, in, 50, MPI_INT, last, me, MPI_COMM_WORLD, &status);
        }
        CHECK(in[0] == last * 1000 + me * 100 + i && in[49] == in[0] + 49);
    }
    return NULL;
}

static void* wait_for_last(void* unused) {
    int value = 0;
    MPI_Recv(&value, 1, MPI_INT, rank, 500, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(value == 42);
    return unused;
}

int main(int argc, char** argv) {
    int provided, value = 42, is_main;
    pthread_t threads[THREADS], waiter;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(provided == MPI_THREAD_MULTIPLE);
    MPI_Is_thread_main(&is_main);
    CHECK(is_main);
    pthread_create(&waiter, NULL, wait_for_last, NULL);
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, talk, (void*)(intptr_t)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    MPI_Send(&value, 1, MPI_INT, rank, 500, MPI_COMM_WORLD);
    pthread_join(waiter, NULL);
    return end_check();
}
