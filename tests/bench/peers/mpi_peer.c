/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One MPI library between two ranks: half a round trip for each size, and a stream of messages in windows; between any
 * number: a barrier and an allreduce of one double. Compiled once with the mpicc of each library; run.py reads the lines
 * "lat BYTES NS", "bw BYTES NS_PER_MESSAGE" and "collN BYTES NS", N being the number of ranks and 0 bytes a barrier.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 64, LARGEST = 4 << 20 };
static const double sample_seconds = 0.008;
static char *out, *in;
static int rank;

static void ping_pong(int bytes, long count)
{
    long i;
    for (i = 0; i < count; ++i) {
        if (rank == 0) MPI_Send(out, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(in, bytes, MPI_CHAR, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1) MPI_Send(out, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
    }
}

static void stream(int bytes, long windows)
{
    MPI_Request requests[WINDOW];
    long i;
    int k;
    char done;
    for (i = 0; i < windows; ++i) {
        for (k = 0; k < WINDOW; ++k) {
            if (rank == 0)
                MPI_Isend(out, bytes, MPI_CHAR, 1, 2, MPI_COMM_WORLD, &requests[k]);
            else
                MPI_Irecv(in, bytes, MPI_CHAR, 0, 2, MPI_COMM_WORLD, &requests[k]);
        }
        MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    }
    if (rank == 0)
        MPI_Recv(&done, 1, MPI_CHAR, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(&done, 1, MPI_CHAR, 0, 3, MPI_COMM_WORLD);
}

static void barrier(int bytes, long count)
{
    for (; count > 0; --count) MPI_Barrier(MPI_COMM_WORLD);
}

static void allreduce(int bytes, long count)
{
    double mine = rank, sum;
    for (; count > 0; --count) MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

/* Nanoseconds for one of `count`, long enough to measure; both ranks take the same counts. */
static double measure(void (*body)(int, long), int bytes)
{
    long count = 4;
    double took = 0;
    int step;
    for (step = 0; step < 3; ++step) {
        double began;
        MPI_Barrier(MPI_COMM_WORLD);
        began = MPI_Wtime();
        body(bytes, count);
        took = (MPI_Wtime() - began) / (double)count;
        if (step < 2) {
            long fits = (long)(sample_seconds * (step == 0 ? 0.1 : 1.0) / (took > 1e-9 ? took : 1e-9));
            count = fits < 4 ? 4 : fits > 1000000 ? 1000000 : fits;
            MPI_Bcast(&count, 1, MPI_LONG, 0, MPI_COMM_WORLD);
        }
    }
    return took * 1e9;
}

int main(int argc, char** argv)
{
    int i, ranks;
    double rounds[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    out = malloc(LARGEST);
    in = malloc(LARGEST);
    if (out == NULL || in == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
    memset(out, 1, LARGEST);
    memset(in, 2, LARGEST);
    rounds[0] = measure(barrier, 0);
    rounds[1] = measure(allreduce, sizeof(double));
    if (rank == 0) printf("coll%d 0 %.2f\ncoll%d 8 %.2f\n", ranks, rounds[0], ranks, rounds[1]);
    for (i = 1; i < argc && ranks == 2; ++i) {
        int bytes = atoi(argv[i]);
        double lat, bw;
        if (bytes < 1 || bytes > LARGEST) continue;
        lat = measure(ping_pong, bytes) / 2;
        bw = measure(stream, bytes) / WINDOW;
        if (rank == 0) {
            printf("lat %d %.2f\nbw %d %.3f\n", bytes, lat, bytes, bw);
            fflush(stdout);
        }
    }
    MPI_Finalize();
    return 0;
}
