/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A private copy of either historic header, before and after ours: whichever comes first wins and the other
 * adds nothing (spec/header 1). run.sh defines PRIVATE_GUARD 1 or 2 and, for one half, OURS_FIRST.
 */
#ifdef OURS_FIRST
#include <vipl.h>
#endif

#include "private_copy/private_vipl.h"

#include <vipl.h>

#ifdef OURS_FIRST
#ifdef PRIVATE_COPY_WON
#error "both headers were read"
#endif
typedef char ours[sizeof(VIP_DESCRIPTOR) == 64 ? 1 : -1];
#else
#if !defined(PRIVATE_COPY_WON) || defined(VIP_DESCRIPTOR_ALIGNMENT)
#error "both headers were read"
#endif
typedef char ours[sizeof(VIP_DESCRIPTOR) == sizeof(int) ? 1 : -1];
#endif
extern int uses(ours);
