/* SPDX-License-Identifier: BSD-2-Clause */
/* For the C programs of this folder: the open NIC, its VIs, and the time of a call in milliseconds. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <vipl.h>

static VIP_NIC_HANDLE nic;
static VIP_NIC_ATTRIBUTES at;

/* Ends the program where the call has failed. */
static void must(VIP_RETURN r, const char* call) {
    if (r == VIP_SUCCESS) return;
    fprintf(stderr, "[%ld] %s: %d\n", (long)getpid(), call, (int)r);
    exit(1);
}

static double ms_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static VIP_VI_HANDLE new_vi(void) {
    VIP_VI_ATTRIBUTES how;
    VIP_VI_HANDLE vi;
    memset(&how, 0, sizeof how);
    how.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
    how.MaxTransferSize = 4096;
    must(VipCreateVi(nic, &how, NULL, NULL, &vi), "VipCreateVi");
    return vi;
}
