/* SPDX-License-Identifier: BSD-2-Clause */
/* Stands for the copy of an old header that a program carries: its guard is chosen by the test (spec/compat
 * H1). */
#ifndef PRIVATE_GUARD
#error "the test must name the guard"
#endif
#if (PRIVATE_GUARD == 1 && !defined(_VIPL_)) || (PRIVATE_GUARD == 2 && !defined(_VIPL_H))
#if PRIVATE_GUARD == 1
#define _VIPL_
#else
#define _VIPL_H
#endif
#define PRIVATE_COPY_WON
#define VIP_TRUE 1
typedef int VIP_RETURN;
typedef struct {
    int private_member;
} VIP_DESCRIPTOR;
extern VIP_RETURN VipOpenNic(void);
#endif
