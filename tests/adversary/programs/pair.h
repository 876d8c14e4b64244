/* SPDX-License-Identifier: BSD-2-Clause */
/* One VI with a block of registered memory: descriptors in the first page, data behind. Shared by the programs here. */
#ifndef ADVERSARY_PAIR_H
#define ADVERSARY_PAIR_H

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <vipl.h>

enum { kData = 4096, kLongest = 65536 };

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void fail(const char* what, long code) {
    printf("%s: %ld\n", what, code);
    fflush(stdout);
    _exit(1);
}

static void must(VIP_RETURN code, const char* what) {
    if (code != VIP_SUCCESS) fail(what, (long)code);
}

struct pair {
    VIP_NIC_HANDLE nic;
    VIP_NIC_ATTRIBUTES attributes;
    VIP_VI_HANDLE vi;
    VIP_MEM_HANDLE region;
    char* memory;
    volatile int lost;
    volatile double lost_at;
};

static void pair_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error) {
    struct pair* p = context;
    if (error->ErrorCode != VIP_ERROR_CONN_LOST) return;
    p->lost_at = seconds();
    p->lost = 1;
}

static inline int pair_is_lost(void* p) { return ((struct pair*)p)->lost; }

static void pair_open(struct pair* p, size_t bytes) {
    VIP_MEM_ATTRIBUTES memory;
    VIP_VI_ATTRIBUTES vi;
    memset(p, 0, sizeof *p);
    must(VipOpenNic("nic0", &p->nic), "VipOpenNic");
    must(VipQueryNic(p->nic, &p->attributes), "VipQueryNic");
    VipErrorCallback(p->nic, p, pair_error);
    p->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(&memory, 0, sizeof memory);
    memory.EnableRdmaWrite = memory.EnableRdmaRead = VIP_TRUE;
    must(VipRegisterMem(p->nic, p->memory, (VIP_ULONG)bytes, &memory, &p->region), "VipRegisterMem");
    memset(&vi, 0, sizeof vi);
    vi.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
    vi.MaxTransferSize = kLongest;
    vi.EnableRdmaWrite = vi.EnableRdmaRead = VIP_TRUE;
    must(VipCreateVi(p->nic, &vi, NULL, NULL, &p->vi), "VipCreateVi");
}

static VIP_NET_ADDRESS* pair_address(struct pair* p, char* room, const char* discriminator) {
    VIP_NET_ADDRESS* a = (VIP_NET_ADDRESS*)room;
    a->HostAddressLen = p->attributes.NicAddressLen;
    a->DiscriminatorLen = (VIP_UINT16)strlen(discriminator);
    memcpy(a->HostAddress, p->attributes.LocalNicAddress, a->HostAddressLen);
    memcpy(a->HostAddress + a->HostAddressLen, discriminator, a->DiscriminatorLen);
    return a;
}

static void pair_accept(struct pair* p, const char* discriminator) {
    char local[256], remote[256];
    VIP_CONN_HANDLE connection;
    VIP_VI_ATTRIBUTES theirs;
    must(VipConnectWait(p->nic, pair_address(p, local, discriminator), 20000, (VIP_NET_ADDRESS*)remote, &theirs,
                        &connection),
         "VipConnectWait");
    must(VipConnectAccept(connection, p->vi), "VipConnectAccept");
}

static void pair_request(struct pair* p, const char* discriminator) {
    char local[256], remote[256];
    VIP_VI_ATTRIBUTES theirs;
    const double end = seconds() + 20;
    VIP_RETURN code;
    do {
        code = VipConnectRequest(p->vi, pair_address(p, local, "caller"), pair_address(p, remote, discriminator),
                                 20000, &theirs);
    } while (code == VIP_NO_MATCH && seconds() < end);
    must(code, "VipConnectRequest");
}

static VIP_DESCRIPTOR* pair_descriptor(struct pair* p, int number, void* data, uint32_t bytes) {
    VIP_DESCRIPTOR* d = (VIP_DESCRIPTOR*)(p->memory + number * 128);
    memset(d, 0, 128);
    d->CS.SegCount = bytes != 0 ? 1 : 0;
    d->CS.Length = bytes;
    d->DS[0].Local.Data.Address = data;
    d->DS[0].Local.Handle = p->region;
    d->DS[0].Local.Length = bytes;
    return d;
}

static void pair_receive(struct pair* p, int number, void* data, uint32_t bytes) {
    must(VipPostRecv(p->vi, pair_descriptor(p, number, data, bytes), p->region), "VipPostRecv");
}

static void pair_send(struct pair* p, int number, void* data, uint32_t bytes) {
    VIP_DESCRIPTOR* done;
    must(VipPostSend(p->vi, pair_descriptor(p, number, data, bytes), p->region), "VipPostSend");
    must(VipSendWait(p->vi, 20000, &done), "VipSendWait");
}

/* The code of the completion of one RDMA. */
static VIP_RETURN pair_rdma(struct pair* p, int number, int operation, void* here, uint32_t bytes, uint64_t there,
                            VIP_MEM_HANDLE handle) {
    VIP_DESCRIPTOR *d = pair_descriptor(p, number, here, bytes), *done;
    VIP_RETURN code;
    d->DS[1] = d->DS[0];
    d->CS.SegCount = 2;
    d->CS.Control = (VIP_UINT16)operation;
    memset(&d->DS[0], 0, sizeof d->DS[0]);
    d->DS[0].Remote.Data.AddressBits = there;
    d->DS[0].Remote.Handle = handle;
    code = VipPostSend(p->vi, d, p->region);
    return code != VIP_SUCCESS ? code : VipSendWait(p->vi, 20000, &done);
}

#endif
