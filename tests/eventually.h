/* SPDX-License-Identifier: BSD-2-Clause */
/* The way a test in C waits for a condition; tests/eventually.py is the same in Python and says which time a limit
 * counts.
 *
 *     eventually("the peer's word", word_is_there, &peer)
 *     eventually_of("the peer's word", word_is_there, &peer, pids, 2, 5.0)
 *
 * Both return 1 when condition(argument) has returned something else than 0, and 0 after the limit, with a sentence on
 * stderr. eventually_of() takes the processes that make the condition true, and the limit in seconds of their running
 * time; eventually() waits for this process. */
#ifndef EVENTUALLY_H
#define EVENTUALLY_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define EVENTUALLY_LIMIT 10.0      /* seconds */
#define EVENTUALLY_HARD_END 20     /* times the limit */
#define EVENTUALLY_PAUSE 0.01      /* seconds between two looks at a condition */
#define EVENTUALLY_READ_EVERY 0.25 /* seconds between two looks at the figures */

enum { EVENTUALLY_FAMILY = 4096 };

/* The clock, the pause and the figures of a wait, in seconds. A reader returns a negative number where the kernel has
 * no such figures. */
struct eventually_machine {
    double (*wall)(void);
    void (*pause)(double seconds);
    double (*queued)(const pid_t* pids, int count);
    double (*stalled)(void);
};

static inline double eventually_wall(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static inline void eventually_pause(double seconds) {
    const struct timespec pause = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&pause, NULL);
}

/* The first bytes of a file below /proc; an empty text where it cannot be read. */
static inline void eventually_text(const char* path, char* text, size_t size) {
    FILE* const file = fopen(path, "r");
    text[file ? fread(text, 1, size - 1, file) : 0] = 0;
    if (file) fclose(file);
}

static inline int eventually_has(const pid_t* pids, int count, pid_t pid) {
    for (int i = 0; i < count; i++)
        if (pids[i] == pid) return 1;
    return 0;
}

/* Adds to `pids` the processes whose parent is one of them; their number then. */
static inline int eventually_children(pid_t* pids, int count) {
    DIR* const folder = opendir("/proc");
    if (!folder) return count;
    for (const struct dirent* entry; (entry = readdir(folder)) && count < EVENTUALLY_FAMILY;) {
        char path[64], text[256];
        const pid_t pid = (pid_t)atoi(entry->d_name);
        int parent = 0;
        if (pid <= 0 || eventually_has(pids, count, pid)) continue;
        snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
        eventually_text(path, text, sizeof text);
        const char* const after_name = strrchr(text, ')');
        if (after_name && sscanf(after_name, ") %*c %d", &parent) == 1 && eventually_has(pids, count, (pid_t)parent))
            pids[count++] = pid;
    }
    closedir(folder);
    return count;
}

static inline double eventually_queued(const pid_t* pids, int count) {
    static pid_t family[EVENTUALLY_FAMILY];
    double sum = 0;
    int known = 0, before = 0;
    if (count > EVENTUALLY_FAMILY) count = EVENTUALLY_FAMILY;
    memcpy(family, pids, (size_t)count * sizeof *pids);
    while (before != count) before = count, count = eventually_children(family, count);
    for (int i = 0; i < count; i++) {
        char path[320], text[128];
        snprintf(path, sizeof path, "/proc/%d/task", (int)family[i]);
        DIR* const folder = opendir(path);
        for (const struct dirent* entry; folder && (entry = readdir(folder));) {
            unsigned long long ran = 0, waited = 0, times = 0;
            if (entry->d_name[0] == '.') continue;
            snprintf(path, sizeof path, "/proc/%d/task/%s/schedstat", (int)family[i], entry->d_name);
            eventually_text(path, text, sizeof text);
            if (sscanf(text, "%llu %llu %llu", &ran, &waited, &times) != 3 || times == 0) continue;
            sum += (double)waited * 1e-9;
            known = 1;
        }
        if (folder) closedir(folder);
    }
    return known ? sum : -1;
}

static inline double eventually_stalled(void) {
    char text[512];
    unsigned long long total = 0;
    eventually_text("/proc/pressure/cpu", text, sizeof text);
    const char* const place = strncmp(text, "some ", 5) == 0 ? strstr(text, "total=") : NULL;
    return place && sscanf(place, "total=%llu", &total) == 1 ? (double)total * 1e-6 : -1;
}

static inline double eventually_figures(const struct eventually_machine* machine, const pid_t* pids, int count,
                                        int* source) {
    const double queued = machine->queued(pids, count), stalled = queued < 0 ? machine->stalled() : -1;
    *source = queued >= 0 ? 1 : stalled >= 0 ? 2 : 0;
    return queued >= 0 ? queued : stalled >= 0 ? stalled : 0;
}

static inline int eventually_on(const struct eventually_machine* machine, const char* what, int (*condition)(void*),
                                void* argument, const pid_t* pids, int count, double limit) {
    int source = 0;
    double figures = eventually_figures(machine, pids, count, &source), waited = 0, running = 0;
    const double begun = machine->wall(); /* on a loaded machine the look at the figures takes seconds */
    double read_at = begun;
    for (;;) {
        const double now = machine->wall(), wall = now - begun;
        if (now >= read_at + EVENTUALLY_READ_EVERY || wall >= limit) {
            int source_now = 0;
            const double figures_now = eventually_figures(machine, pids, count, &source_now);
            /* The sum falls when a thread ends. */
            if (source_now == source && figures_now > figures) waited += figures_now - figures;
            figures = figures_now, source = source_now, read_at = now;
        }
        running = wall > waited ? wall - waited : 0;
        if (condition(argument)) return 1;
        if (wall >= limit && (running >= limit || wall >= EVENTUALLY_HARD_END * limit)) {
            fprintf(stderr, "not within the limit: %s; waited %.1f s, of which processes", what, wall);
            for (int i = 0; i < count; i++) fprintf(stderr, "%s %d", i ? "," : "", (int)pids[i]);
            fprintf(stderr, " were able to run %.1f s\n", running);
            return 0;
        }
        machine->pause(EVENTUALLY_PAUSE);
    }
}

static inline int eventually_of(const char* what, int (*condition)(void*), void* argument, const pid_t* pids, int count,
                                double limit) {
    static const struct eventually_machine machine = {eventually_wall, eventually_pause, eventually_queued,
                                                      eventually_stalled};
    return eventually_on(&machine, what, condition, argument, pids, count, limit);
}

static inline int eventually(const char* what, int (*condition)(void*), void* argument) {
    const pid_t self = getpid();
    return eventually_of(what, condition, argument, &self, 1, EVENTUALLY_LIMIT);
}

#endif
