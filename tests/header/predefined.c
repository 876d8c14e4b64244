/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of the header that the program has defined first. Compiled in every language mode, also as C++; with
 * -DWITH_SEGMENT_REGISTERS also with the macros CS and DS of <sys/reg.h>.
 */
#define IN 1
#define OUT 2
#define VI_CALL something_else
#define VIPL095
#define DLLEXPORT
#define VIP_ERROR_NOT_SUPPORTED (-33333)
#ifdef WITH_SEGMENT_REGISTERS
#define CS 17
#define DS 23
#endif
#include <vipl.h>

#if IN != 1 || OUT != 2
#error "the program's own IN and OUT were replaced"
#endif

int direction(int in, VIP_RETURN code, VIP_DESCRIPTOR* descriptor);
int direction(int in, VIP_RETURN code, VIP_DESCRIPTOR* descriptor) {
    if ((int)code == VIP_ERROR_NOT_SUPPORTED) return 0;
#ifdef WITH_SEGMENT_REGISTERS
    descriptor->_CS.SegCount = CS;
    descriptor->_DS[1].Local.Length = DS;
#else
    descriptor->CS.SegCount = 17;
    descriptor->DS[1].Local.Length = 23;
#endif
    descriptor->Control.Status = 0;
    return in ? IN : OUT;
}
