/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names that programs of the 1990s own: true and false as variables, sem_* and short functions with
 * parameters of their own, one before and one after the header (spec/compat H11, L1, L2). Compiled as C up to
 * C17 and, without the two keywords, as C2x and C++.
 */
static int sem_wait(int semaphore);
static int post(int value);
static const char* _(const char* text);
#if !defined(__cplusplus) && !(defined(__STDC_VERSION__) && __STDC_VERSION__ > 201710L)
#define OLD_C
static int true = 1;
#endif
static int bool_count, wait_count, timeout, uint32_t, uint64_t, size_t, pthread_t;

#define VIPL095
#include <vipl.h>

#include <vipl.h>

#ifdef OLD_C
static int false = 0;
static int bool = 2;
#endif
static int nics, interface, length, address, handle, status;
static int sem_open(int key, int count);
static int sem_close(int semaphore);
static char* __(char* text);
static int DeviceName, Timeout, Context;

static int sem_wait(int semaphore) { return semaphore; }
static int sem_open(int key, int count) { return key + count; }
static int sem_close(int semaphore) { return -semaphore; }
static int post(int value) { return value; }
static const char* _(const char* text) { return text; }
static char* __(char* text) { return text; }

int use_all(VIP_DESCRIPTOR* descriptor);
int use_all(VIP_DESCRIPTOR* descriptor) {
    char text[1];
    text[0] = 0;
    descriptor->CS.Status = 0;
#ifdef OLD_C
    if (true == false) return bool;
#endif
    return sem_wait(1) + sem_open(1, 2) + sem_close(3) + post(nics + interface) + _("")[0] + __(text)[0] +
           bool_count + wait_count + timeout + uint32_t + uint64_t + size_t + pthread_t + length + address +
           handle + status + DeviceName + Timeout + Context;
}
