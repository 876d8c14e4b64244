/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Extensions of this library beyond VIPL 1.0. C89; include after or instead of <vipl.h>. All names begin with Vipx.
 */
#ifndef VIADUCT_EXT_H
#define VIADUCT_EXT_H

#include <vipl.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* Version of the library, major.minor.patch; a constant string. */
const char* VipxVersion(void);

/*
 * Makes the wire of one connection misbehave, for tests: the text is the provider's (see viaduct(7)); an empty text or
 * NULL ends it. The VI must be Connected.
 * SUCCESS, INVALID_PARAMETER (dead handle, or a plan that cannot be understood), INVALID_STATE, ERROR_NOT_SUPPORTED
 * (this NIC has no such thing), ERROR_RESOURCE.
 */
VIP_RETURN VipxSetFaultPlan(VIP_VI_HANDLE ViHandle, const char* Plan);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
