/* SPDX-License-Identifier: BSD-2-Clause */
/* slowness() of tests/slowness.hpp for programs in C: by how much a limit of time that was passed is to be longer on a
 * machine that has other work. */
#ifndef SLOWNESS_H
#define SLOWNESS_H

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { SLOWNESS_PROBES = 15 };

static inline double slowness_clock(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static inline int slowness_order(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

static inline double slowness(void) {
    double found[SLOWNESS_PROBES], sum = 0, load = 0;
    for (int i = 0; i < SLOWNESS_PROBES; i++) {
        const struct timespec pause = {0, 1000000};
        nanosleep(&pause, NULL);
        const double wall = slowness_clock(CLOCK_MONOTONIC), busy = slowness_clock(CLOCK_THREAD_CPUTIME_ID);
        double used = 0;
        while ((used = slowness_clock(CLOCK_THREAD_CPUTIME_ID) - busy) < 0.002) {
        }
        found[i] = (slowness_clock(CLOCK_MONOTONIC) - wall) / used;
        if (found[i] < 1) found[i] = 1;
    }
    qsort(found, SLOWNESS_PROBES, sizeof *found, slowness_order);
    for (int i = SLOWNESS_PROBES / 2; i < SLOWNESS_PROBES; i++) sum += found[i];
    const double mean = sum / (SLOWNESS_PROBES - SLOWNESS_PROBES / 2);
    if (getloadavg(&load, 1) != 1) load = 0;
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    double waiting = load / (double)(processors > 0 ? processors : 1);
    if (waiting > 2 * found[SLOWNESS_PROBES - 1]) waiting = 2 * found[SLOWNESS_PROBES - 1];
    const double slow = mean > waiting ? mean : waiting;
    return slow < 1 ? 1 : slow > 60 ? 60 : slow;
}

#endif
