/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * waits echo              VipConnectWait for "echo", and sends back what comes until the connection ends
 * waits call MS...        for each number VipConnectWait, VipConnectPeerRequest and VipDisconnect
 * waits talk HOST MS...   the same on a thread of its own, while messages go to an echo at HOST and come back
 *
 * After "calls" each call is a line: its name, its result and how many milliseconds it took. The last line of `talk` is
 * "messages", how many came back, and the milliseconds of the slowest. Run by stopped.py and users.py.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <vipl.h>

#include "calls.h"

enum { kBytes = 64, kMost = 8, kBetweenUs = 2000, kBeforeUs = 300000 };

static VIP_MEM_HANDLE memory;
static struct {
    VIP_DESCRIPTOR receive[2], send;
    char data[3][kBytes];
} __attribute__((aligned(64))) block;
union address {
    VIP_NET_ADDRESS a;
    char room[sizeof(VIP_NET_ADDRESS) + 64];
};
struct calls {
    int count;
    VIP_ULONG timeouts[kMost];
};
static volatile int done;

static void say(const char* call, VIP_RETURN r, double began) {
    const char* const known = r == VIP_SUCCESS ? "SUCCESS" : r == VIP_TIMEOUT ? "TIMEOUT" : "another";
    printf("%s %s %.0f\n", call, known, ms_now() - began);
    fflush(stdout);
}

static VIP_NET_ADDRESS* address(union address* to, char* host, const char* name) {
    VIP_NET_ADDRESS* const a = &to->a;
    a->HostAddressLen = at.NicAddressLen;
    memcpy(a->HostAddress, at.LocalNicAddress, at.NicAddressLen);
    if (host != NULL) must(VipNSGetHostByName(nic, host, a, 0), "VipNSGetHostByName");
    a->DiscriminatorLen = (VIP_UINT16)strlen(name);
    memcpy(a->HostAddress + a->HostAddressLen, name, strlen(name));
    return a;
}

static void fill(VIP_DESCRIPTOR* d, char* data) {
    memset(d, 0, sizeof *d);
    d->CS.SegCount = 1;
    d->CS.Length = kBytes;
    d->DS[0].Local.Data.Address = data;
    d->DS[0].Local.Handle = memory;
    d->DS[0].Local.Length = kBytes;
}

static void post_receive(VIP_VI_HANDLE vi, int i) {
    fill(&block.receive[i], block.data[i]);
    must(VipPostRecv(vi, &block.receive[i], memory), "VipPostRecv");
}

/* The next message is in *which. */
static VIP_RETURN receive(VIP_VI_HANDLE vi, int* which) {
    VIP_DESCRIPTOR* d;
    const VIP_RETURN r = VipRecvWait(vi, VIP_INFINITE, &d);
    *which = d == &block.receive[1];
    return r;
}

static VIP_RETURN send_block(VIP_VI_HANDLE vi) {
    VIP_DESCRIPTOR* d;
    fill(&block.send, block.data[2]);
    must(VipPostSend(vi, &block.send, memory), "VipPostSend");
    return VipSendWait(vi, VIP_INFINITE, &d);
}

static void echo(void) {
    union address own, remote;
    VIP_VI_HANDLE const vi = new_vi();
    VIP_VI_ATTRIBUTES theirs;
    VIP_CONN_HANDLE asked;
    int i;
    post_receive(vi, 0);
    post_receive(vi, 1);
    remote.a.HostAddressLen = 0;
    must(VipConnectWait(nic, address(&own, NULL, "echo"), VIP_INFINITE, &remote.a, &theirs, &asked), "VipConnectWait");
    must(VipConnectAccept(asked, vi), "VipConnectAccept");
    while (receive(vi, &i) == VIP_SUCCESS) {
        post_receive(vi, i);
        if (send_block(vi) != VIP_SUCCESS) return;
    }
}

static void* call(void* argument) {
    const struct calls* const calls = argument;
    VIP_VI_HANDLE const vi = new_vi();
    int i;
    puts("calls");
    fflush(stdout);
    for (i = 0; i < calls->count; ++i) {
        union address own, remote;
        VIP_VI_ATTRIBUTES theirs;
        VIP_CONN_HANDLE asked;
        double began = ms_now();
        remote.a.HostAddressLen = 0;
        say("VipConnectWait",
            VipConnectWait(nic, address(&own, NULL, "absent"), calls->timeouts[i], &remote.a, &theirs, &asked), began);
        began = ms_now();
        say("VipConnectPeerRequest",
            VipConnectPeerRequest(vi, address(&own, NULL, "here"), address(&remote, NULL, "there"), 100), began);
        began = ms_now();
        say("VipDisconnect", VipDisconnect(vi), began);
    }
    done = 1;
    return NULL;
}

static void talk(char* host, struct calls* calls) {
    union address own, remote;
    VIP_VI_HANDLE const vi = new_vi();
    VIP_VI_ATTRIBUTES theirs;
    VIP_RETURN r;
    pthread_t thread;
    double slowest = 0;
    long messages = 0;
    int i;
    post_receive(vi, 0);
    post_receive(vi, 1);
    do {
        r = VipConnectRequest(vi, address(&own, NULL, "talk"), address(&remote, host, "echo"), 10000, &theirs);
    } while (r == VIP_NO_MATCH); /* until the echo waits */
    must(r, "VipConnectRequest");
    puts("connected");
    fflush(stdout);
    usleep(kBeforeUs); /* sleeps: the program looks for its session at the daemon first */
    if (pthread_create(&thread, NULL, call, calls) != 0) exit(1);
    while (!done) {
        const double began = ms_now();
        must(send_block(vi), "VipSendWait");
        must(receive(vi, &i), "VipRecvWait");
        post_receive(vi, i);
        ++messages;
        if (ms_now() - began > slowest) slowest = ms_now() - began;
        usleep(kBetweenUs); /* sleeps: the pace of the messages */
    }
    pthread_join(thread, NULL);
    printf("messages %ld %.0f\n", messages, slowest);
}

int main(int argc, char** argv) {
    const char* const what = argc > 1 ? argv[1] : "";
    const int talks = strcmp(what, "talk") == 0;
    VIP_MEM_ATTRIBUTES how;
    struct calls calls;
    int i;
    memset(&calls, 0, sizeof calls);
    memset(&how, 0, sizeof how);
    for (i = talks ? 3 : 2; i < argc && calls.count < kMost; ++i)
        calls.timeouts[calls.count++] = strtoul(argv[i], NULL, 10);
    must(VipOpenNic((char*)"udp0", &nic), "VipOpenNic");
    must(VipNSInit(nic, NULL), "VipNSInit");
    must(VipQueryNic(nic, &at), "VipQueryNic");
    must(VipRegisterMem(nic, &block, sizeof block, &how, &memory), "VipRegisterMem");
    if (strcmp(what, "echo") == 0)
        echo();
    else if (strcmp(what, "call") == 0)
        call(&calls);
    else if (talks && argc > 2)
        talk(argv[2], &calls);
    else
        return 2;
    return 0;
}
