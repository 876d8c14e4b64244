/* SPDX-License-Identifier: BSD-2-Clause */
/* What the small MPI programs of this folder share: a check that names its line, a random sequence that is the same
 * everywhere, and a digest of what was received, so that runs over different protocols can be compared. */
#ifndef CHECK_H
#define CHECK_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, faults;
static uint64_t digest = 1469598103934665603u;

#define CHECK(condition)                                                                    \
    do {                                                                                    \
        if (!(condition)) {                                                                 \
            fprintf(stderr, "rank %d: %s:%d: %s\n", rank, __FILE__, __LINE__, #condition);  \
            if (++faults > 20) MPI_Abort(MPI_COMM_WORLD, 1);                                \
        }                                                                                   \
    } while (0)

static inline uint32_t next_random(uint32_t* state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static inline void fill(unsigned char* data, size_t bytes, uint32_t seed) {
    for (size_t i = 0; i < bytes; i++) data[i] = (unsigned char)(seed + i * 7 + (i >> 8));
}

static inline int is_filled(const unsigned char* data, size_t bytes, uint32_t seed) {
    for (size_t i = 0; i < bytes; i++)
        if (data[i] != (unsigned char)(seed + i * 7 + (i >> 8))) return 0;
    return 1;
}

static inline void digest_bytes(const void* data, size_t bytes) {
    const unsigned char* at = (const unsigned char*)data;
    for (size_t i = 0; i < bytes; i++) digest = (digest ^ at[i]) * 1099511628211u;
}

static inline void start_check(int* argc, char*** argv) {
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}

/* Point-to-point only, so that it works as soon as that does. */
static inline int end_check(void) {
    uint64_t mine[2] = {digest, (uint64_t)faults};
    if (rank != 0) {
        MPI_Send(mine, 2, MPI_UINT64_T, 0, 9999, MPI_COMM_WORLD);
    } else {
        for (int from = 1; from < size; from++) {
            uint64_t theirs[2];
            MPI_Recv(theirs, 2, MPI_UINT64_T, from, 9999, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            digest = (digest ^ theirs[0]) * 1099511628211u;
            faults += (int)theirs[1];
        }
        if (faults == 0) printf("No Errors, digest %016llx\n", (unsigned long long)digest);
    }
    MPI_Finalize();
    return faults != 0;
}

#endif
