/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How programs use the codes: as case labels, as indices into tables, with #ifndef around their own versions,
 * and in positional initialisers (spec/compat H8, H9, H10, H13, Q18). Compiled in every language mode, also
 * as C++.
 */
#include <vipl.h>

/* H9: a value of the program's own unless the header has a macro. */
#ifndef VIP_ERROR_NOT_SUPPORTED
#define VIP_ERROR_NOT_SUPPORTED -33333
#endif

/* H10: the same for a name that no header has. */
#ifndef VIP_DATA_ALIGNMENT
#define VIP_DATA_ALIGNMENT VIP_DESCRIPTOR_ALIGNMENT
#else
#error "vipl.h took the name VIP_DATA_ALIGNMENT"
#endif

const char* name_of(int code);
const char* name_of(int code) {
    switch (code) {
        case VIP_SUCCESS:
            return "VIP_SUCCESS";
        case VIP_NOT_DONE:
            return "VIP_NOT_DONE";
        case VIP_INVALID_PARAMETER:
            return "VIP_INVALID_PARAMETER";
        case VIP_ERROR_RESOURCE:
            return "VIP_ERROR_RESOURCE";
        case VIP_TIMEOUT:
            return "VIP_TIMEOUT";
        case VIP_REJECT:
            return "VIP_REJECT";
        case VIP_INVALID_RELIABILITY_LEVEL:
            return "VIP_INVALID_RELIABILITY_LEVEL";
        case VIP_INVALID_MTU:
            return "VIP_INVALID_MTU";
        case VIP_INVALID_QOS:
            return "VIP_INVALID_QOS";
        case VIP_INVALID_PTAG:
            return "VIP_INVALID_PTAG";
        case VIP_INVALID_RDMAREAD:
            return "VIP_INVALID_RDMAREAD";
        case VIP_DESCRIPTOR_ERROR:
            return "VIP_DESCRIPTOR_ERROR";
        case VIP_INVALID_STATE:
            return "VIP_INVALID_STATE";
        case VIP_ERROR_NAMESERVICE:
            return "VIP_ERROR_NAMESERVICE";
        case VIP_NO_MATCH:
            return "VIP_NO_MATCH";
        case VIP_NOT_REACHABLE:
            return "VIP_NOT_REACHABLE";
        case VIP_ERROR_NOT_SUPPORTED:
            return "VIP_ERROR_NOT_SUPPORTED";
        default:
            return "?";
    }
}

/* A switch over the type itself must be complete without a default: -Wswitch is an error in this build. */
int is_retry(VIP_RETURN code);
int is_retry(VIP_RETURN code) {
    switch (code) {
        case VIP_TIMEOUT:
        case VIP_NO_MATCH:
        case VIP_ERROR_RESOURCE:
        case VIP_REJECT:
            return 1;
        case VIP_SUCCESS:
        case VIP_NOT_DONE:
        case VIP_INVALID_PARAMETER:
        case VIP_INVALID_RELIABILITY_LEVEL:
        case VIP_INVALID_MTU:
        case VIP_INVALID_QOS:
        case VIP_INVALID_PTAG:
        case VIP_INVALID_RDMAREAD:
        case VIP_DESCRIPTOR_ERROR:
        case VIP_INVALID_STATE:
        case VIP_ERROR_NAMESERVICE:
        case VIP_NOT_REACHABLE:
        case VIP_ERROR_NOT_SUPPORTED:
            return 0;
    }
    return -1;
}

const char* status_name(VIP_DESCRIPTOR* descriptor);
const char* status_name(VIP_DESCRIPTOR* descriptor) {
    switch (descriptor->Control.Status & VIP_STATUS_OP_MASK) {
        case VIP_STATUS_OP_SEND:
            return "send";
        case VIP_STATUS_OP_RECEIVE:
            return "receive";
        case VIP_STATUS_OP_RDMA_WRITE:
            return "write";
        case VIP_STATUS_OP_REMOTE_RDMA_WRITE:
            return "remote write";
        case VIP_STATUS_OP_RDMA_READ:
            return "read";
    }
    return "?";
}

/* H13. */
VIP_VI_ATTRIBUTES positional = {VIP_SERVICE_RELIABLE_DELIVERY, 65536, 0, 0, VIP_TRUE, VIP_FALSE};

static const VIP_UINT32 masks[] = {VIP_STATUS_FORMAT_ERROR,       VIP_STATUS_PROTECTION_ERROR,
                                   VIP_STATUS_LENGTH_ERROR,       VIP_STATUS_PARTIAL_ERROR,
                                   VIP_STATUS_DESC_FLUSHED_ERROR, VIP_STATUS_TRANSPORT_ERROR,
                                   VIP_STATUS_RDMA_PROT_ERROR,    VIP_STATUS_REMOTE_DESC_ERROR};

/* Q18: an 11-entry and a 17-entry table. */
static const char* errors[11];
static const char* returns[VIP_ERROR_NOT_SUPPORTED + 1];
typedef char seventeen[sizeof(returns) / sizeof(returns[0]) == 17 ? 1 : -1];

const char* describe(VIP_ERROR_DESCRIPTOR* error, VIP_RETURN code);
const char* describe(VIP_ERROR_DESCRIPTOR* error, VIP_RETURN code) {
    static seventeen unused;
    (void)unused;
    if (error->OpCode & masks[0]) return errors[error->ErrorCode];
    return returns[code];
}

/* Preprocessor tests on the macros. */
#if VIP_STATUS_DONE != 1 || VIP_CONTROL_IMMEDIATE != 4 || VIP_SERVICE_RELIABLE_RECEPTION != 4 || \
    VIP_INFINITE < 1
#error "constants must be usable by the preprocessor"
#endif
#if !defined(VIP_TRUE) || !defined(VIP_FALSE) || !defined(IN) || !defined(OUT) || !defined(VI_CALL)
#error "a macro of the historic headers is missing"
#endif
