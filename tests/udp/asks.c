/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * asks request HOST MS [TIMES]   VipConnectRequest, so often until it succeeds; MS may be "infinite"
 * asks peer HOST MS              VipConnectPeerRequest and VipConnectPeerWait
 * asks serve                     VipConnectWait without end, and VipConnectAccept
 * asks hold                      VipConnectWait without end; says "asked", and answers nothing
 *
 * Each result is a line: its name and how many milliseconds the call took. A program that has its connection says
 * "connected", and ends, as one that holds a request does, when its input does. Run by silence.py.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <vipl.h>

#include "calls.h"

static const char name[] = "silence";
static union {
    VIP_NET_ADDRESS address;
    char room[sizeof(VIP_NET_ADDRESS) + 64];
} own, remote;

static void say(VIP_RETURN r, double began) {
    const char* const known = r == VIP_SUCCESS    ? "SUCCESS"
                              : r == VIP_TIMEOUT  ? "TIMEOUT"
                              : r == VIP_NO_MATCH ? "NO_MATCH"
                                                  : "another";
    printf("%s %.0f\n", known, ms_now() - began);
    fflush(stdout);
}

/* Of that host; NULL: our own. */
static VIP_NET_ADDRESS* address(char* host) {
    VIP_NET_ADDRESS* const a = host != NULL ? &remote.address : &own.address;
    a->HostAddressLen = at.NicAddressLen;
    if (host == NULL)
        memcpy(a->HostAddress, at.LocalNicAddress, at.NicAddressLen);
    else
        must(VipNSGetHostByName(nic, host, a, 0), "VipNSGetHostByName");
    a->DiscriminatorLen = sizeof name;
    memcpy(a->HostAddress + a->HostAddressLen, name, sizeof name);
    return a;
}

static void stay(const char* why) {
    puts(why);
    fflush(stdout);
    while (getchar() != EOF) {
    }
    exit(0);
}

static void request(char* host, VIP_ULONG timeout, int times) {
    VIP_VI_HANDLE const vi = new_vi();
    VIP_VI_ATTRIBUTES theirs;
    int i;
    for (i = 0; i < times; ++i) {
        const double began = ms_now();
        const VIP_RETURN r = VipConnectRequest(vi, address(NULL), address(host), timeout, &theirs);
        say(r, began);
        if (r == VIP_SUCCESS) stay("connected");
    }
}

static void peer(char* host, VIP_ULONG timeout) {
    VIP_VI_HANDLE const vi = new_vi();
    VIP_VI_ATTRIBUTES theirs;
    const double began = ms_now();
    VIP_RETURN r = VipConnectPeerRequest(vi, address(NULL), address(host), timeout);
    if (r == VIP_SUCCESS) r = VipConnectPeerWait(vi, &theirs);
    say(r, began);
    if (r == VIP_SUCCESS) stay("connected");
}

static void serve(int hold) {
    VIP_VI_HANDLE const vi = new_vi();
    VIP_VI_ATTRIBUTES theirs;
    VIP_CONN_HANDLE asked;
    VIP_RETURN r;
    double began;
    must(VipConnectWait(nic, address(NULL), VIP_INFINITE, &remote.address, &theirs, &asked), "VipConnectWait");
    if (hold) stay("asked");
    began = ms_now();
    r = VipConnectAccept(asked, vi);
    say(r, began);
    if (r == VIP_SUCCESS) stay("connected");
}

int main(int argc, char** argv) {
    const char* const call = argc > 1 ? argv[1] : "";
    const VIP_ULONG timeout = argc > 3 && strcmp(argv[3], "infinite") != 0 ? strtoul(argv[3], NULL, 10) : VIP_INFINITE;
    must(VipOpenNic((char*)"udp0", &nic), "VipOpenNic");
    must(VipNSInit(nic, NULL), "VipNSInit");
    must(VipQueryNic(nic, &at), "VipQueryNic");
    if (strcmp(call, "request") == 0 && argc > 3) {
        request(argv[2], timeout, argc > 4 ? atoi(argv[4]) : 1);
    } else if (strcmp(call, "peer") == 0 && argc > 3) {
        peer(argv[2], timeout);
    } else if (strcmp(call, "hold") == 0 || strcmp(call, "serve") == 0) {
        serve(call[0] == 'h');
    } else {
        return 2;
    }
    return 0;
}
