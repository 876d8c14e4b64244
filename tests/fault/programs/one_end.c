/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * one_end NAME TIMEOUT_MS ROLE...: one or both ends of a connection in this process. Prints "ready" when the NIC is open, then
 * makes each ROLE's attempt, in a thread of its own, when a line comes on the standard input; at the end a line for each:
 * ROLE RESULT MILLISECONDS FATE. Roles: accept (one request), serve (waits again until a request was accepted), request,
 * peer1, peer2. Fate: works (messages went both ways), lost (connected, and the connection ended by itself), alone
 * (connected, and neither), idle (not connected, and the VI is Idle), state-N. NAME keeps attempts apart. Run by handshake_test.py.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <vipl.h>

#define FATE_MS 5000 /* within which a connection shows what it is worth */

struct end {
    const char* role;
    VIP_VI_HANDLE vi;
    char* block; /* a descriptor for each queue, and their data */
    VIP_RETURN result;
    double ms;
    const char* fate;
    char text[32];
};

static VIP_NIC_HANDLE nic;
static VIP_NIC_ATTRIBUTES at;
static VIP_MEM_HANDLE memory;
static VIP_ULONG timeout;
static const char* name;

static double ms_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void must(VIP_RETURN r, const char* what) {
    if (r == VIP_SUCCESS) return;
    fprintf(stderr, "preparing: %s: %d\n", what, (int)r);
    _exit(5);
}

static VIP_NET_ADDRESS* address(char* room, const char* discriminator) {
    VIP_NET_ADDRESS* a = (VIP_NET_ADDRESS*)room;
    char text[32];
    const int length = snprintf(text, sizeof text, "%s-%s", discriminator, name);
    a->HostAddressLen = at.NicAddressLen;
    a->DiscriminatorLen = (VIP_UINT16)length;
    memcpy(a->HostAddress, at.LocalNicAddress, at.NicAddressLen);
    memcpy(a->HostAddress + at.NicAddressLen, text, (size_t)length);
    return a;
}

static void prepare(struct end* e, char* block) {
    VIP_VI_ATTRIBUTES attributes;
    VIP_DESCRIPTOR* receive = (VIP_DESCRIPTOR*)block;
    memset(&attributes, 0, sizeof attributes);
    attributes.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
    attributes.MaxTransferSize = 4096;
    must(VipCreateVi(nic, &attributes, NULL, NULL, &e->vi), "VipCreateVi");
    e->block = block;
    receive->CS.SegCount = 1;
    receive->CS.Length = 8;
    receive->DS[0].Local.Data.Address = block + 512;
    receive->DS[0].Local.Handle = memory;
    receive->DS[0].Local.Length = 8;
    must(VipPostRecv(e->vi, receive, memory), "VipPostRecv");
}

static VIP_RETURN accept_one(struct end* e, double until) {
    char local[256], remote[256];
    VIP_VI_ATTRIBUTES theirs;
    VIP_CONN_HANDLE incoming;
    const double left = until - ms_now();
    VIP_RETURN r = VipConnectWait(nic, address(local, "served"), left > 1 ? (VIP_ULONG)left : 1,
                                  (VIP_NET_ADDRESS*)remote, &theirs, &incoming);
    return r == VIP_SUCCESS ? VipConnectAccept(incoming, e->vi) : r;
}

static VIP_RETURN attempt(struct end* e) {
    char local[256], remote[256];
    VIP_VI_ATTRIBUTES theirs;
    VIP_RETURN r;
    const double until = ms_now() + 2.0 * (double)timeout + 3000;
    if (strcmp(e->role, "accept") == 0) return accept_one(e, until);
    if (strcmp(e->role, "serve") == 0) {
        do {
            r = accept_one(e, until);
        } while (r != VIP_SUCCESS && ms_now() < until);
        return r;
    }
    if (strcmp(e->role, "request") == 0)
        return VipConnectRequest(e->vi, address(local, "asks"), address(remote, "served"), timeout, &theirs);
    r = VipConnectPeerRequest(e->vi, address(local, e->role), address(remote, strcmp(e->role, "peer1") == 0 ? "peer2" : "peer1"),
                              timeout);
    return r == VIP_SUCCESS ? VipConnectPeerWait(e->vi, &theirs) : r;
}

/* Sends a message and takes one of the other end. */
static const char* fate_of(struct end* e) {
    VIP_DESCRIPTOR* send = (VIP_DESCRIPTOR*)(e->block + 256);
    VIP_DESCRIPTOR* done = NULL;
    VIP_RETURN r;
    send->CS.SegCount = 1;
    send->CS.Length = 8;
    send->DS[0].Local.Data.Address = e->block + 768;
    send->DS[0].Local.Handle = memory;
    send->DS[0].Local.Length = 8;
    must(VipPostSend(e->vi, send, memory), "VipPostSend");
    r = VipRecvWait(e->vi, FATE_MS, &done);
    if (r == VIP_SUCCESS && VipSendWait(e->vi, FATE_MS, &done) == VIP_SUCCESS) return "works";
    return r == VIP_TIMEOUT ? "alone" : "lost";
}

static void* run(void* argument) {
    struct end* e = argument;
    VIP_VI_STATE state;
    VIP_VI_ATTRIBUTES attributes;
    VIP_BOOLEAN sends, receives;
    const double begun = ms_now();
    e->result = attempt(e);
    e->ms = ms_now() - begun;
    if (e->result == VIP_SUCCESS) {
        e->fate = fate_of(e);
        return NULL;
    }
    must(VipQueryVi(e->vi, &state, &attributes, &sends, &receives), "VipQueryVi");
    snprintf(e->text, sizeof e->text, "state-%d", (int)state);
    e->fate = state == VIP_STATE_IDLE ? "idle" : e->text;
    return NULL;
}

int main(int argc, char** argv) {
    struct end ends[2];
    pthread_t threads[2];
    char line[16];
    char* block;
    int i;
    const int roles = argc - 3;
    VIP_MEM_ATTRIBUTES m = {0, VIP_FALSE, VIP_FALSE};
    if (roles < 1 || roles > 2) return 2;
    alarm(100);
    name = argv[1];
    timeout = (VIP_ULONG)atol(argv[2]);
    memset(ends, 0, sizeof ends);
    must(VipOpenNic("/dev/via_lo", &nic), "VipOpenNic");
    must(VipQueryNic(nic, &at), "VipQueryNic");
    block = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(VipRegisterMem(nic, block, 4096, &m, &memory), "VipRegisterMem");
    for (i = 0; i < roles; ++i) {
        ends[i].role = argv[3 + i];
        prepare(&ends[i], block + 1024 * i);
    }
    printf("ready\n");
    fflush(stdout);
    for (i = 0; i < roles; ++i) {
        if (fgets(line, sizeof line, stdin) == NULL) return 2;
        if (pthread_create(&threads[i], NULL, run, &ends[i]) != 0) return 2;
    }
    for (i = 0; i < roles; ++i) pthread_join(threads[i], NULL);
    for (i = 0; i < roles; ++i)
        printf("%s %d %.0f %s\n", ends[i].role, (int)ends[i].result, ends[i].ms, ends[i].fate);
    return 0;
}
