/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The language of 1978 and GNU habits of 1999: K&R definitions, implicit int, calls without prototypes,
 * nested functions and line comments (spec/compat H12). Compiled as gnu89, gnu99 and gnu17.
 */
#include <vipl.h>

extern int errno;
static tries = 3;

static connect_vi(vi, local, remote) VIP_VI_HANDLE vi;
VIP_NET_ADDRESS *local, *remote;
{
    VIP_VI_ATTRIBUTES attributes;
    VIP_RETURN result;
#ifdef __clang__ /* has no nested functions */
#define again() (result == VIP_NO_MATCH && tries-- > 0)
#else
    int again() { return result == VIP_NO_MATCH && tries-- > 0; }
#endif

    do result = VipConnectRequest(vi, local, remote, VIP_INFINITE, &attributes);  // no pause
    while (again());
    if (result != VIP_SUCCESS) errno = result, complain(vi, result);
    return result;
}

complain(vi, result) VIP_VI_HANDLE vi;
{ return vi != (VIP_VI_HANDLE)0 && connect_vi(vi, 0, 0) == result; }
