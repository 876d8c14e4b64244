/* SPDX-License-Identifier: BSD-2-Clause */
/* How jobs end: "abort", "killed" (rank 1 by a signal while the others wait for it), "fatal" (an error without a handler),
 * "late" (one rank finalizes long after the others), "unread" (messages that are never received), "twice" (MPI_Init
 * again), "epoch" and "epoch-messages" (rank 1 by a signal while it holds the lock of a window that the others wait
 * for), "exit" (rank 1 by exit(CODE)), "child" (a child of rank 1 by exit(0)),
 * "waiting-child" (a child of a process alone waits for what never comes), "at-exit" (MPI_Finalize where the
 * process ends), "forgotten" (no process calls MPI_Finalize, rank 0 is the last). */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static void die(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    fprintf(stderr, "killed at %ld.%03ld\n", (long)now.tv_sec, now.tv_nsec / 1000000);
    raise(SIGKILL);
}

static void die_in_epoch(int shared) {
    static int own;
    int* base = &own;
    int one = 1;
    MPI_Win win;
    if (shared)
        MPI_Win_allocate(sizeof own, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    else
        MPI_Win_create(base, sizeof own, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    if (rank == 1) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) die();
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Put(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
    MPI_Win_unlock(0, win);
    MPI_Win_free(&win);
}

static void finalize(void) { MPI_Finalize(); }

int main(int argc, char** argv) {
    const char* how = argc > 1 ? argv[1] : "";
    int value = 0;
    if (strcmp(how, "at-exit") == 0) atexit(finalize);
    start_check(&argc, &argv);
    if (strcmp(how, "abort") == 0) {
        if (rank == 1) MPI_Abort(MPI_COMM_WORLD, 7);
        MPI_Recv(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (strcmp(how, "killed") == 0) {
        MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 1, &value, 1, MPI_INT, (rank + size - 1) % size, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        if (rank == 1) die();
        MPI_Recv(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (strcmp(how, "exit") == 0) {
        if (rank == 1) exit(atoi(argv[2]));
        MPI_Barrier(MPI_COMM_WORLD);
    } else if (strcmp(how, "forgotten") == 0) {
        MPI_Bcast(&value, 1, MPI_INT, size - 1, MPI_COMM_WORLD);
        for (int i = 0; i < 10 && rank == 0; i++) {
            MPI_Iprobe(MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &value, MPI_STATUS_IGNORE);
            usleep(10000); /* sleeps: rank 0 computes, so that it is the last */
        }
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        printf("rank %d at %ld.%09ld\n", rank, (long)now.tv_sec, now.tv_nsec);
        fflush(stdout); /* it is seen also of one that is cut short */
        return 0;
    } else if (strcmp(how, "child") == 0) {
        if (rank == 1) {
            const pid_t child = fork();
            if (child == 0) exit(0);
            waitpid(child, NULL, 0);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    } else if (strcmp(how, "waiting-child") == 0) {
        int status = 0;
        const pid_t child = fork();
        if (child == 0) {
            signal(SIGALRM, SIG_DFL);
            alarm(1);
            MPI_Probe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            _exit(0);
        }
        waitpid(child, &status, 0);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM);
    } else if (strcmp(how, "at-exit") == 0) {
        return 0;
    } else if (strncmp(how, "epoch", 5) == 0) {
        die_in_epoch(how[5] == 0);
    } else if (strcmp(how, "fatal") == 0) {
        MPI_Send(&value, 1, MPI_INT, size + 5, 0, MPI_COMM_WORLD);
    } else if (strcmp(how, "twice") == 0) {
        MPI_Init(&argc, &argv);
    } else if (strcmp(how, "late") == 0) {
        if (rank == 0) sleep(2); /* sleeps: rank 0 computes while the others finalize */
    } else if (strcmp(how, "unread") == 0) {
        MPI_Request request;
        MPI_Isend(&value, 1, MPI_INT, (rank + 1) % size, 3, MPI_COMM_WORLD, &request);
        MPI_Request_free(&request);
    }
    return end_check();
}
