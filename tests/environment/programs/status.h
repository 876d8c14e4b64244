/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a program of this folder is doing and what came of it, in a page of a file that the watchdog reads
 * (ENVIRONMENT_STATUS names it): the name of the call that is under way stays readable when the program hangs, has no
 * descriptors left or cannot write anywhere.
 */
#pragma once

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* The layout that status.py reads. */
struct status {
    char call[128];   /* "VipOpenNic", or "" between calls */
    int64_t since_ns; /* CLOCK_MONOTONIC of the program: a time namespace has its own */
    int32_t pid;
    int32_t finished; /* 1 when result is whole */
    char result[256]; /* "works", or "CALL: VIP_CODE", or "wrong: ..." */
};

extern struct status* status;

/* Maps the page; a program that cannot is as well off with one of its own. */
void status_open(void);
void status_call(const char* call);
/* The first result stays. */
void status_result(const char* text);
int64_t status_now_ns(void);

/* CALL(VipOpenNic(...)): its name is in the page for as long as it lasts. */
#define CALL(expression) (status_call(#expression), status_return(expression))

static inline int status_return(int code) {
    status_call("");
    return code;
}
