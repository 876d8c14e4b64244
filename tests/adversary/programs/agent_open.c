/* SPDX-License-Identifier: BSD-2-Clause */
/* agent_open SECONDS: opens a NIC again and again, each time as a new process, and prints a line for each: what VipOpenNic
   returned and how many milliseconds it took. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <vipl.h>

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

int main(int argc, char** argv) {
    double const end = now_ms() + (argc > 1 ? atof(argv[1]) : 1) * 1e3;
    do {
        pid_t const child = fork();
        if (child == 0) {
            VIP_NIC_HANDLE nic;
            double const begin = now_ms();
            VIP_RETURN const result = VipOpenNic("paramnet0", &nic);
            printf("%d %.3f\n", (int)result, now_ms() - begin);
            fflush(stdout);
            _exit(0);
        }
        if (child < 0 || waitpid(child, NULL, 0) != child) return 1;
    } while (now_ms() < end);
    return 0;
}
