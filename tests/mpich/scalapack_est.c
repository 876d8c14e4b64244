/* SPDX-License-Identifier: BSD-2-Clause
   Loaded before ScaLAPACK 2.2.1, this gives a value to a variable that it uses without one. PDPORFS estimates an error
   by calls of PDLACON, one after another, and hands over EST, of which PDLACON makes the former estimate (ESTOLD) in
   each call. PDPORFS has never set it, and PDLACON sets it in the last call only: so each process compares its estimate
   with what its stack happens to hold, some take it for converged and some do not, and from there on they call
   different things. */
#define _GNU_SOURCE
#include <dlfcn.h>

typedef void Pdlacon(int* n, double* v, int* iv, int* jv, int* descv, double* x, int* ix, int* jx, int* descx, int* isgn,
                     double* est, int* kase);

void pdlacon_(int* n, double* v, int* iv, int* jv, int* descv, double* x, int* ix, int* jx, int* descx, int* isgn,
              double* est, int* kase) {
    static Pdlacon* real;
    if (!real) real = (Pdlacon*)dlsym(RTLD_NEXT, "pdlacon_");
    if (*kase == 0) *est = 0;
    real(n, v, iv, jv, descv, x, ix, jx, descx, isgn, est, kase);
}
