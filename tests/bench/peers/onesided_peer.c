/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One MPI library's one-sided operations between two ranks: rank 0 operates on the window of rank 1, which waits inside
 * MPI. Each operation is followed by a flush. Compiled once with the mpicc of each library; onesided.py reads the lines
 * "WINDOW OPERATION NS".
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST = 64 << 10 };
static const double sample_seconds = 0.02;
static MPI_Win win;
static char buffer[LARGEST];
/* A library may read and write these until the flush, when the function that began the operation has long returned. */
static long zero = 0, one = 1, old;

static void fetch_and_op(void) { MPI_Fetch_and_op(&one, &old, MPI_LONG, 1, 0, MPI_SUM, win); }
static void compare_and_swap(void) { MPI_Compare_and_swap(&zero, &zero, &old, MPI_LONG, 1, 0, win); }

static void put_8(void) { MPI_Put(buffer, 8, MPI_CHAR, 1, 64, 8, MPI_CHAR, win); }
static void put_64k(void) { MPI_Put(buffer, LARGEST, MPI_CHAR, 1, 0, LARGEST, MPI_CHAR, win); }
static void get_8(void) { MPI_Get(buffer, 8, MPI_CHAR, 1, 64, 8, MPI_CHAR, win); }
static void get_64k(void) { MPI_Get(buffer, LARGEST, MPI_CHAR, 1, 0, LARGEST, MPI_CHAR, win); }
static void sum_8(void) { MPI_Accumulate(&one, 1, MPI_LONG, 1, 8, 1, MPI_LONG, MPI_SUM, win); }

static const struct {
    const char* name;
    void (*operate)(void);
} operations[] = {{"fetch-and-op", fetch_and_op}, {"compare-and-swap", compare_and_swap}, {"accumulate-8", sum_8},
                  {"put-8", put_8},               {"get-8", get_8},                       {"put-65536", put_64k},
                  {"get-65536", get_64k}};

/* Nanoseconds for one operation and its flush: the best of several samples, each long enough to measure. */
static double measure(void (*operate)(void))
{
    long count = 16, i;
    double best = 0;
    int sample;
    for (sample = 0; sample < 8; ++sample) {
        double began = MPI_Wtime(), took;
        for (i = 0; i < count; ++i) {
            operate();
            MPI_Win_flush(1, win);
        }
        took = (MPI_Wtime() - began) / (double)count;
        if (sample < 2) {
            count = (long)(sample_seconds / (took > 1e-9 ? took : 1e-9));
            count = count < 16 ? 16 : count > 2000000 ? 2000000 : count;
        } else if (best == 0 || took < best) {
            best = took;
        }
    }
    return best * 1e9;
}

static void measure_all(const char* window)
{
    int rank;
    size_t i;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        MPI_Win_lock_all(0, win);
        for (i = 0; i < sizeof operations / sizeof operations[0]; ++i)
            printf("%s %s %.1f\n", window, operations[i].name, measure(operations[i].operate));
        MPI_Win_unlock_all(win);
        fflush(stdout);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&win);
}

int main(int argc, char** argv)
{
    void* base;
    MPI_Init(&argc, &argv);
    MPI_Win_allocate(LARGEST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    memset(base, 0, LARGEST);
    MPI_Barrier(MPI_COMM_WORLD);
    measure_all("allocated");
    base = calloc(1, LARGEST);
    MPI_Win_create(base, LARGEST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    measure_all("created");
    free(base);
    MPI_Finalize();
    return 0;
}
