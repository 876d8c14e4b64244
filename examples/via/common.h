/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What each example begins with: two processes, a NIC each, registered memory, and a connection. Each example is one
 * program that plays both sides: the parent waits for the connection, the child asks for it. Nothing is shared between
 * them but what goes over the connection, so the sides may as well be on two hosts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vipl.h>

#define MEMORY 65536 /* registered bytes of each process: descriptors in the first page, data behind it */
#define DATA(n) (memory + 4096 + (n) * 4096)

static int caller;           /* whether this is the side that asks for the connection */
static const char *side;     /* its name in what is printed */
static VIP_NIC_HANDLE nic;
static VIP_NIC_ATTRIBUTES facts;
static VIP_PROTECTION_HANDLE ptag;
static char *memory;
static VIP_MEM_HANDLE handle;

/* Calls answer codes; whatever is not success ends an example. */
static inline void must(VIP_RETURN result, const char *call) {
    if (result != VIP_SUCCESS) {
        fprintf(stderr, "%s: %s answers %d\n", side, call, (int)result);
        exit(1);
    }
}

/* The NIC, a tag that joins memory and VIs, and memory that the NIC may reach. */
static inline void open_nic(const char *device) {
    VIP_MEM_ATTRIBUTES wish;

    must(VipOpenNic((VIP_CHAR *)device, &nic), "VipOpenNic");
    must(VipQueryNic(nic, &facts), "VipQueryNic");
    must(VipNSInit(nic, NULL), "VipNSInit");
    must(VipCreatePtag(nic, &ptag), "VipCreatePtag");
    memory = aligned_alloc(4096, MEMORY);
    memset(memory, 0, MEMORY);
    memset(&wish, 0, sizeof wish);
    wish.Ptag = ptag;
    wish.EnableRdmaWrite = VIP_TRUE; /* others may write here, and read where the NIC can do that */
    wish.EnableRdmaRead = facts.RDMAReadSupport ? VIP_TRUE : VIP_FALSE;
    must(VipRegisterMem(nic, memory, MEMORY, &wish, &handle), "VipRegisterMem");
}

/* Two sides, each with its NIC. Called first: a NIC that is open does not pass to a child. */
static inline void begin(const char *device) {
    caller = fork() == 0;
    side = caller ? "caller" : "waiter";
    open_nic(device);
}

static inline VIP_VI_HANDLE make_vi(VIP_RELIABILITY_LEVEL level, VIP_CQ_HANDLE send_queue,
                                    VIP_CQ_HANDLE receive_queue) {
    VIP_VI_ATTRIBUTES wish;
    VIP_VI_HANDLE vi;

    memset(&wish, 0, sizeof wish);
    wish.ReliabilityLevel = level;
    wish.MaxTransferSize = 4096;
    wish.Ptag = ptag;
    wish.EnableRdmaWrite = VIP_TRUE;
    wish.EnableRdmaRead = facts.RDMAReadSupport && level != VIP_SERVICE_UNRELIABLE ? VIP_TRUE : VIP_FALSE;
    must(VipCreateVi(nic, &wish, send_queue, receive_queue, &vi), "VipCreateVi");
    return vi;
}

/* An address is a host and a discriminator: bytes by which a program tells its connections apart. */
static inline VIP_NET_ADDRESS *address(const char *host, int number) {
    static VIP_UINT64 rooms[4][16]; /* each is used in the call that it is made for, two at most */
    static unsigned next;
    VIP_NET_ADDRESS *a = (VIP_NET_ADDRESS *)rooms[next++ % 4];

    memset(a, 0, sizeof rooms[0]);
    a->HostAddressLen = facts.NicAddressLen;
    if (host != NULL)
        must(VipNSGetHostByName(nic, (VIP_CHAR *)host, a, 0), "VipNSGetHostByName");
    else
        memcpy(a->HostAddress, facts.LocalNicAddress, facts.NicAddressLen);
    a->DiscriminatorLen = sizeof number;
    memcpy(a->HostAddress + a->HostAddressLen, &number, sizeof number);
    return a;
}

/* Receives that a message needs are posted before: what comes earlier breaks a reliable connection. */
static inline void connect_as_caller(VIP_VI_HANDLE vi, int number) {
    VIP_VI_ATTRIBUTES theirs;
    VIP_RETURN result;

    do { /* NO_MATCH: no program waits there yet */
        result = VipConnectRequest(vi, address(NULL, number), address("localhost", number), 10000, &theirs);
    } while (result == VIP_NO_MATCH);
    must(result, "VipConnectRequest");
}

static inline void connect_as_waiter(VIP_VI_HANDLE vi, int number) {
    VIP_VI_ATTRIBUTES theirs;
    VIP_CONN_HANDLE request;

    must(VipConnectWait(nic, address(NULL, number), VIP_INFINITE, address(NULL, number), &theirs, &request),
         "VipConnectWait");
    must(VipConnectAccept(request, vi), "VipConnectAccept");
}

/* The descriptor at a place of the first page, with one segment: `length` bytes at `data`. */
static inline VIP_DESCRIPTOR *describe(int place, int operation, void *data, unsigned length) {
    VIP_DESCRIPTOR *d = (VIP_DESCRIPTOR *)memory + place;

    memset(d, 0, sizeof *d);
    d->CS.SegCount = 1;
    d->CS.Control = (VIP_UINT16)operation;
    d->CS.Length = length;
    d->DS[0].Local.Data.Address = data;
    d->DS[0].Local.Handle = handle;
    d->DS[0].Local.Length = length;
    return d;
}

static inline void send_text(VIP_VI_HANDLE vi, int place, const char *text) {
    VIP_DESCRIPTOR *done;

    strcpy(DATA(place), text);
    must(VipPostSend(vi, describe(place, VIP_CONTROL_OP_SENDRECV, DATA(place), (unsigned)strlen(text) + 1), handle),
         "VipPostSend");
    must(VipSendWait(vi, 10000, &done), "VipSendWait");
}

/* The parent ends with what the child says, so that an example ends well only when both sides do. */
static inline int end(void) {
    int status = 0;

    must(VipCloseNic(nic), "VipCloseNic"); /* takes what is left of VIs and memory with it */
    if (!caller) wait(&status);
    return status != 0;
}
