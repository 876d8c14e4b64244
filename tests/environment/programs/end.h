/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One end of a connection as a plain VIA program has it: a NIC, a VI, one region from the program's allocator. Every
 * call is noted in the status page; whatever fails ends the program with its name and code as the result.
 */
#pragma once

#include <vipl.h>

#include "status.h"

enum {
    kLargest = 1 << 20,             /* bytes of one message */
    kReceive = 4096,                /* offsets in the region: the descriptors come first */
    kSend = kReceive + kLargest,
    kWindow = kSend + kLargest,     /* what the peer may write and read */
    kWindowBytes = 65536,
    kRegion = kWindow + kWindowBytes
};

struct end {
    VIP_NIC_HANDLE nic;
    VIP_NIC_ATTRIBUTES attributes;
    VIP_VI_HANDLE vi;
    VIP_MEM_HANDLE handle;
    unsigned char* memory;
    volatile int lost; /* VIP_ERROR_CONN_LOST has been told */
};

/* How long a step may take, in milliseconds: ENVIRONMENT_TIMEOUT_MS. */
unsigned time_limit(void);

/* Ends the program. */
_Noreturn void finish(int exit_code, const char* format, ...) __attribute__((format(printf, 2, 3)));
const char* code_name(VIP_RETURN code);
void must(VIP_RETURN code, const char* call);

#define MUST(expression) must((VIP_RETURN)CALL(expression), #expression)

void end_open(struct end* end);
void end_close(struct end* end);
/* As the server: waits for one client. As a client: asks until a server waits. */
void end_accept(struct end* end, const char* name);
void end_connect(struct end* end, const char* name);
void end_disconnect(struct end* end);

void end_post_receive(struct end* end);
/* The next message, of which all bytes are those of fill(). */
void end_expect(struct end* end, unsigned bytes, unsigned seed);
/* The next message, whatever it is; its length. */
unsigned end_receive(struct end* end);
void end_send(struct end* end, unsigned bytes);
/* From or to the send buffer. */
void end_rdma(struct end* end, unsigned short operation, unsigned long address, VIP_MEM_HANDLE handle, unsigned bytes);

void fill(unsigned char* memory, unsigned bytes, unsigned seed);
int filled(const unsigned char* memory, unsigned bytes, unsigned seed);
