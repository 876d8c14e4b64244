/* SPDX-License-Identifier: BSD-2-Clause */
#include "crowd.h"

#include <signal.h>
#include <sys/wait.h>

#include "../../eventually.h"
#include "end.h"

enum { kMost = 256, kWaits = -1 };

static void member(volatile int* answer, int exit_pipe) {
    VIP_NIC_HANDLE nic;
    char byte;
    const VIP_RETURN code = VipOpenNic("/dev/via_eth0", &nic);
    *answer = (int)code;
    /* No process ever writes: it ends when the parent has closed its end. */
    while (read(exit_pipe, &byte, 1) > 0) {
    }
    if (code == VIP_SUCCESS) VipCloseNic(nic);
    _exit(0);
}

struct members {
    volatile int* answers;
    unsigned count;
};

static int all_answered(void* argument) {
    const struct members* const members = argument;
    for (unsigned i = 0; i < members->count; ++i)
        if (members->answers[i] == kWaits) return 0;
    return 1;
}

void crowd(unsigned processes) {
    static pid_t children[kMost];
    int exit_pipe[2];
    if (processes > kMost) processes = kMost;
    volatile int* answers = mmap(NULL, kMost * sizeof *answers, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (answers == MAP_FAILED || pipe(exit_pipe) != 0) finish(4, "out of memory");
    for (unsigned i = 0; i < processes; ++i) {
        answers[i] = kWaits;
        children[i] = fork();
        if (children[i] < 0) finish(4, "fork");
        if (children[i] == 0) {
            close(exit_pipe[1]);
            member(&answers[i], exit_pipe[0]);
        }
    }
    unsigned waiting = 0, refused = 0;
    int other = 0;
    struct members members = {answers, processes};
    status_call("VipOpenNic in one of a crowd(");
    eventually_of("an answer to each member", all_answered, &members, children, (int)processes, 10);
    status_call("");
    for (unsigned i = 0; i < processes; ++i) {
        waiting += answers[i] == kWaits;
        refused += answers[i] == VIP_ERROR_RESOURCE;
        if (answers[i] != kWaits && answers[i] != VIP_SUCCESS && answers[i] != VIP_ERROR_RESOURCE) other = answers[i];
    }
    close(exit_pipe[1]);
    close(exit_pipe[0]);
    for (unsigned i = 0; i < processes; ++i) {
        if (waiting != 0) kill(children[i], SIGKILL);
        waitpid(children[i], NULL, 0);
    }
    printf("%u processes, %u refused, %u without an answer\n", processes, refused, waiting);
    fflush(stdout);
    if (waiting != 0) finish(5, "wrong: %u of %u opens have not returned in time", waiting, processes);
    if (other != 0) finish(5, "wrong: an open gave %s", code_name((VIP_RETURN)other));
}
