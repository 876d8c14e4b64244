/* SPDX-License-Identifier: BSD-2-Clause */
/* tests/eventually.h on a clock and figures that the test moves, and its readers on this process. */
#include "eventually.h"

#include <math.h>
#include <sys/wait.h>

static double at, queue, stall;
static int faults;

static void expect(const char* what, int condition) {
    printf("%s  %s\n", condition ? "ok    " : "FAILED", what);
    faults += !condition;
}

static double moved_wall(void) { return at; }
static void moved_pause(double seconds) { at += seconds; }
static double moved_queued(const pid_t* pids, int count) { return pids && count && queue >= 0 ? 7 + queue * at : -1; }
static double moved_stalled(void) { return stall >= 0 ? 7 + stall * at : -1; }
/* The threads in the figures end in second 5 of the wait. */
static double ending_queued(const pid_t* pids, int count) { return moved_queued(pids, count) - (at > 1005 ? 400 : 0); }

static int never(void* argument) { return argument != NULL; }
static int after_two_seconds(void* argument) { return *(double*)argument + 2 <= at; }
static int after_a_long_stop(void* argument) { return (at += *(double*)argument) > 2500; }

static const pid_t pids[] = {41, 42};
static struct eventually_machine moved = {moved_wall, moved_pause, moved_queued, moved_stalled};

static int takes(double wanted, double slack, double of_queue, double of_stall) {
    const double begun = at = 1000;
    queue = of_queue, stall = of_stall;
    return !eventually_on(&moved, "the moon", never, NULL, pids, 2, 10) && fabs(at - begun - wanted) < slack;
}

int main(void) {
    double begun = at = 1000, stop = 1000;
    expect("the condition ends the wait", eventually_on(&moved, "two seconds", after_two_seconds, &begun, pids, 2, 10) && at < 1002.1);
    expect("without load the limit is wall time", takes(10, 0.1, 0, 0));
    expect("the limit leaves out the wait in run queues", takes(40, 0.5, 0.75, 0));
    expect("the pressure counts where processes have no figures", takes(20, 0.5, -1, 0.5));
    expect("the pressure does not count where processes have figures", takes(10, 0.1, 0, 0.5));
    expect("without any figures the limit is wall time", takes(10, 0.1, -1, -1));
    expect("a hang ends at twenty times the limit", takes(200, 0.5, 4, 0));
    moved.queued = ending_queued;
    expect("a thread that ends takes no time back", takes(20, 1, 0.5, 0));
    at = 1000;
    expect("a look follows the limit", eventually_on(&moved, "the second look", after_a_long_stop, &stop, pids, 2, 10));

    int gate[2];
    const pid_t self = getpid();
    if (pipe(gate) != 0) return 1;
    const pid_t child = fork();
    if (child == 0) {
        char byte;
        close(gate[1]);
        _exit(read(gate[0], &byte, 1) != 0);
    }
    close(gate[0]);
    pid_t family[EVENTUALLY_FAMILY] = {self};
    expect("a child belongs to the family", eventually_has(family, eventually_children(family, 1), child));
    close(gate[1]);
    waitpid(child, NULL, 0);
    expect("a process that has ended has no figures", eventually_queued(&child, 1) < 0);
    expect("a real wait ends", !eventually_of("nothing", never, NULL, &self, 1, 0.05) && eventually("all", after_two_seconds, &begun));
    return faults != 0;
}
