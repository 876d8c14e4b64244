/* SPDX-License-Identifier: BSD-2-Clause */
/* MPI_THREAD_MULTIPLE on a crowded machine. Without an argument: of each rank several threads send messages short and long,
 * by MPI_Send, MPI_Ssend and MPI_Isend, several receive what matched probes find, and two are in collective calls and make
 * communicators, all at once. With "idle": threads wait in MPI_Probe for two seconds, which may cost no more than a twentieth of a
 * processor, and the message that then comes is seen at once. */
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "../../eventually.h"
#include "check.h"

enum { SENDERS = 3, RECEIVERS = 3, GATHERERS = 2, MESSAGES = 150, ROUNDS = 40, WAITERS = 3 };

static MPI_Comm messages, gatherings[GATHERERS];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int had, wanted, seen;
static long long sum;

static int target(int message) { return (rank + 1 + message % (size - 1)) % size; }

static void* receive(void* argument) {
    const int waits = (int)(intptr_t)argument % 2;
    for (;;) {
        MPI_Message message;
        MPI_Status status, received;
        int there = 0, count = 0;
        pthread_mutex_lock(&mutex);
        const int over = had == wanted;
        pthread_mutex_unlock(&mutex);
        if (over) return NULL;
        MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, messages, &there, &message, &status);
        if (!there) {
            usleep(50); /* sleeps: this thread leaves the processor to the threads that send */
            continue;
        }
        MPI_Get_count(&status, MPI_INT, &count);
        int* data = malloc((size_t)count * sizeof(int));
        if (waits) {
            MPI_Request request;
            MPI_Imrecv(data, count, MPI_INT, &message, &request);
            MPI_Wait(&request, &received);
        } else {
            MPI_Mrecv(data, count, MPI_INT, &message, &received);
        }
        pthread_mutex_lock(&mutex);
        CHECK(data[0] == status.MPI_SOURCE && data[1] == status.MPI_TAG && data[count - 1] == data[2] + count);
        had++;
        sum += data[2];
        pthread_mutex_unlock(&mutex);
        free(data);
    }
}

static void* transmit(void* argument) {
    static const int counts[] = {4, 100, 3000, 20000, 60000};
    const int me = (int)(intptr_t)argument;
    for (int i = 0; i < MESSAGES; i++) {
        const int count = counts[(i * 7 + me) % 5];
        int* data = calloc((size_t)count, sizeof(int));
        data[0] = rank;
        data[1] = me;
        data[2] = i;
        data[count - 1] = i + count;
        if (i % 3 == 0) {
            MPI_Ssend(data, count, MPI_INT, target(i), me, messages);
        } else if (i % 3 == 1) {
            MPI_Request request;
            MPI_Isend(data, count, MPI_INT, target(i), me, messages, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            MPI_Send(data, count, MPI_INT, target(i), me, messages);
        }
        free(data);
    }
    return NULL;
}

static void* gather(void* argument) {
    const MPI_Comm comm = *(const MPI_Comm*)argument;
    for (int i = 0; i < ROUNDS; i++) {
        int all = 0;
        MPI_Comm copy;
        MPI_Allreduce(&i, &all, 1, MPI_INT, MPI_SUM, comm);
        pthread_mutex_lock(&mutex);
        CHECK(all == i * size);
        pthread_mutex_unlock(&mutex);
        MPI_Comm_dup(comm, &copy);
        MPI_Comm_free(&copy);
    }
    return NULL;
}

static void crowd(void) {
    pthread_t threads[SENDERS + RECEIVERS + GATHERERS];
    int n = 0;
    long long all = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &messages);
    for (int i = 0; i < GATHERERS; i++) MPI_Comm_dup(MPI_COMM_WORLD, &gatherings[i]);
    for (int from = 0; from < size; from++)
        for (int i = 0; i < MESSAGES; i++)
            if ((from + 1 + i % (size - 1)) % size == rank) wanted += SENDERS;
    for (int i = 0; i < RECEIVERS; i++) pthread_create(&threads[n++], NULL, receive, (void*)(intptr_t)i);
    for (int i = 0; i < SENDERS; i++) pthread_create(&threads[n++], NULL, transmit, (void*)(intptr_t)i);
    for (int i = 0; i < GATHERERS; i++) pthread_create(&threads[n++], NULL, gather, &gatherings[i]);
    while (n > 0) pthread_join(threads[--n], NULL);
    CHECK(had == wanted);
    MPI_Allreduce(&sum, &all, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    CHECK(all == (long long)size * SENDERS * MESSAGES * (MESSAGES - 1) / 2);
}

static double seconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void* probe(void* argument) {
    const int tag = (int)(intptr_t)argument;
    MPI_Status status;
    int word = 0;
    MPI_Probe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &status);
    MPI_Recv(&word, 1, MPI_INT, status.MPI_SOURCE, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    pthread_mutex_lock(&mutex);
    seen++;
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static int all_seen(void* unused) {
    (void)unused;
    pthread_mutex_lock(&mutex);
    const int all = seen == WAITERS;
    pthread_mutex_unlock(&mutex);
    return all;
}

static void idle(void) {
    pthread_t threads[WAITERS];
    const int own = (int)getpid();
    int* const pids = malloc((size_t)size * sizeof *pids);
    MPI_Allgather(&own, 1, MPI_INT, pids, 1, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < WAITERS; i++) pthread_create(&threads[i], NULL, probe, (void*)(intptr_t)i);
    usleep(300 * 1000); /* sleeps: the threads poll for a while before they sleep */
    /* A thread that spins takes a fifth of a processor and more also beside ten busy programs; what each wake-up of a
     * sleeping one costs depends on them, so the least of some windows counts. All ranks go on to the next window
     * together, so that no message ends a wait of a rank that still measures. */
    double used = 1;
    for (int window = 0, all = 0; window < 5 && !all; window++) {
        const double before = seconds(CLOCK_PROCESS_CPUTIME_ID), began = seconds(CLOCK_MONOTONIC);
        usleep(2000 * 1000); /* sleeps: processor time of this process is measured meanwhile */
        const double share = (seconds(CLOCK_PROCESS_CPUTIME_ID) - before) / (seconds(CLOCK_MONOTONIC) - began);
        if (share < used) used = share;
        const int low = used <= 0.05;
        MPI_Allreduce(&low, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    }
    if (used > 0.05) fprintf(stderr, "rank %d used %.1f per cent of a processor\n", rank, 100 * used);
    CHECK(used <= 0.05);
    for (int i = 0; i < WAITERS; i++) {
        MPI_Send(&i, 1, MPI_INT, (rank + 1) % size, i, MPI_COMM_WORLD);
    }
    /* No call of this thread makes progress for the others. One of the other ranks may not have sent yet. */
    CHECK(eventually_of("a message for each waiting thread", all_seen, NULL, pids, size, 1));
    free(pids);
    for (int i = 0; i < WAITERS; i++) pthread_join(threads[i], NULL);
}

int main(int argc, char** argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(provided == MPI_THREAD_MULTIPLE);
    if (argc > 1)
        idle();
    else
        crowd();
    return end_check();
}
