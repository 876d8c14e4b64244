/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * one_call CALL LIMIT_MS: opens a NIC, prepares CALL, prints "ready", waits for a line on its standard input (the agent's
 * mood has changed by then), makes the call and prints its name, its result and how many milliseconds it took. A call that
 * has not returned after LIMIT_MS is named on the standard error; the status is 3 then. "fresh" opens nothing before.
 * Its discriminators are its own: programs that share a real agent do not meet. Run by moody_test.py.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <vipl.h>

#include <viaduct/ext.h>

#include "../../eventually.h"

#define SHORT 1000 /* the timeout of calls that have one */

static VIP_NIC_HANDLE nic;
static VIP_NIC_ATTRIBUTES at;
static VIP_VI_HANDLE vi;
static VIP_CQ_HANDLE cq;
static VIP_MEM_HANDLE memory;
static VIP_CONN_HANDLE incoming;
static char* block;
static VIP_VI_ATTRIBUTES attributes;
static const char* volatile under_way = "preparing";

static void hung(int s) {
    const char* name = under_way;
    (void)s;
    if (write(2, "HUNG ", 5) < 0 || write(2, name, strlen(name)) < 0 || write(2, "\n", 1) < 0) _exit(4);
    _exit(3);
}

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

static void address(char* room, const char* name) {
    VIP_NET_ADDRESS* a = (VIP_NET_ADDRESS*)room;
    char discriminator[64];
    const int bytes = snprintf(discriminator, sizeof discriminator, "%s-%ld", name, (long)getpid());
    a->HostAddressLen = at.NicAddressLen;
    a->DiscriminatorLen = (VIP_UINT16)bytes;
    memcpy(a->HostAddress, at.LocalNicAddress, at.NicAddressLen);
    memcpy(a->HostAddress + at.NicAddressLen, discriminator, (size_t)bytes);
}

static void prepare(void) {
    VIP_MEM_ATTRIBUTES m = {0, VIP_TRUE, VIP_FALSE};
    must(VipOpenNic("/dev/via_lo", &nic), "VipOpenNic");
    must(VipQueryNic(nic, &at), "VipQueryNic");
    attributes.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
    attributes.MaxTransferSize = 4096;
    must(VipCreateVi(nic, &attributes, NULL, NULL, &vi), "VipCreateVi");
    must(VipCreateCQ(nic, 16, &cq), "VipCreateCQ");
    block = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(VipRegisterMem(nic, block, 1 << 16, &m, &memory), "VipRegisterMem");
    must(VipNSInit(nic, NULL), "VipNSInit");
}

static VIP_RETURN request(VIP_VI_HANDLE from, const char* to, VIP_ULONG timeout) {
    char local[256], remote[256];
    VIP_VI_ATTRIBUTES theirs;
    address(local, "asks");
    address(remote, to);
    return VipConnectRequest(from, (VIP_NET_ADDRESS*)local, (VIP_NET_ADDRESS*)remote, timeout, &theirs);
}

static volatile long asking, listening; /* threads in these calls */

static void* ask(void* timeout) {
    asking = syscall(SYS_gettid);
    request(vi, "here", (VIP_ULONG)(size_t)timeout);
    return NULL;
}

/* A request that comes before the wait, and finds none within its grace, is made again. */
static void* ask_until_met(void* unused) {
    (void)unused;
    while (request(vi, "here", 30000) == VIP_NO_MATCH) {
    }
    return NULL;
}

static VIP_RETURN listen_for(VIP_ULONG timeout) {
    char local[256], remote[256];
    VIP_VI_ATTRIBUTES theirs;
    address(local, "here");
    return VipConnectWait(nic, (VIP_NET_ADDRESS*)local, timeout, (VIP_NET_ADDRESS*)remote, &theirs, &incoming);
}

static void* listen_for_ever(void* unused) {
    (void)unused;
    listening = syscall(SYS_gettid);
    listen_for(VIP_INFINITE);
    return NULL;
}

static void in_thread(void* (*run)(void*), void* argument) {
    pthread_t t;
    if (pthread_create(&t, NULL, run, argument) != 0) _exit(5);
    pthread_detach(t);
}

/* The thread has been asleep since the last look, or it has ended. */
static int is_asleep(void* thread) {
    static long seen_thread;
    static char seen[64];
    const long id = *(volatile long*)thread;
    char path[64], text[4096], *at_count;
    int same;
    if (id == 0) return 0;
    snprintf(path, sizeof path, "/proc/self/task/%ld/status", id);
    eventually_text(path, text, sizeof text);
    if (!text[0]) return 1;
    at_count = strstr(text, "\nvoluntary_ctxt_switches:");
    if (!at_count || !strstr(text, "\nState:\tS")) return seen_thread = 0;
    same = seen_thread == id && strncmp(seen, at_count, sizeof seen - 1) == 0;
    seen_thread = id;
    strncpy(seen, at_count, sizeof seen - 1);
    return same;
}
static void await_sleep(volatile long* thread) {
    if (!eventually("a thread sleeps in its call", is_asleep, (void*)thread)) _exit(5);
}

static VIP_RETURN peer(VIP_ULONG timeout) {
    char local[256], remote[256];
    address(local, "peer");
    address(remote, "no-waiter");
    return VipConnectPeerRequest(vi, (VIP_NET_ADDRESS*)local, (VIP_NET_ADDRESS*)remote, timeout);
}

/* ---- the calls that ask the agent, or may */

static void before_incoming(void) {
    in_thread(ask_until_met, NULL);
    must(listen_for(20000), "VipConnectWait");
}
static void before_pending(void) {
    in_thread(ask, (void*)(size_t)VIP_INFINITE);
    await_sleep(&asking);
}
static void before_listening(void) {
    in_thread(listen_for_ever, NULL);
    await_sleep(&listening);
}
static void before_peer(void) { must(peer(SHORT), "VipConnectPeerRequest"); }

static VIP_RETURN open_it(void) { return VipOpenNic("/dev/via_lo", &nic); }
static VIP_RETURN close_it(void) { return VipCloseNic(nic); }
static VIP_RETURN create_vi(void) { /* until the lease is used up */
    VIP_RETURN r = VIP_SUCCESS;
    int i;
    for (i = 0; i < 200 && r == VIP_SUCCESS; ++i) {
        VIP_VI_HANDLE another;
        r = VipCreateVi(nic, &attributes, NULL, NULL, &another);
    }
    return r;
}
static VIP_RETURN create_cq(void) {
    VIP_RETURN r = VIP_SUCCESS;
    int i;
    for (i = 0; i < 100 && r == VIP_SUCCESS; ++i) {
        VIP_CQ_HANDLE another;
        r = VipCreateCQ(nic, 4, &another);
    }
    return r;
}
static VIP_RETURN register_much(void) {
    VIP_MEM_ATTRIBUTES m = {0, VIP_FALSE, VIP_FALSE};
    VIP_MEM_HANDLE handle;
    const size_t bytes = (size_t)1 << 30;
    void* much = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return VipRegisterMem(nic, much, bytes, &m, &handle);
}
/* Most of the first lease (256 MiB) is used before the call, so that a small allocation asks the agent for more: pages of a
 * large one take seconds on a busy machine, which is no fault of the call. */
static void before_allocating(void) {
    VIP_MEM_ATTRIBUTES m = {0, VIP_TRUE, VIP_FALSE};
    VIP_MEM_HANDLE handle;
    const size_t bytes = 250 << 20;
    void* most = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    must(VipRegisterMem(nic, most, bytes, &m, &handle), "VipRegisterMem");
}
static VIP_RETURN allocate(void) {
    VIP_MEM_ATTRIBUTES m = {0, VIP_TRUE, VIP_FALSE};
    VIP_PVOID where;
    VIP_MEM_HANDLE handle;
    return VipxAllocMemory(nic, 8 << 20, 0, &m, &where, &handle);
}
static VIP_RETURN wait_once(void) { return listen_for(SHORT); }
static VIP_RETURN wait_for_ever(void) { return listen_for(VIP_INFINITE); }
static void* ask_soon(void* unused) {
    static volatile long main_thread;
    main_thread = getpid();
    await_sleep(&main_thread);
    return ask(unused);
}
static VIP_RETURN wait_until_asked(void) {
    in_thread(ask_soon, (void*)(size_t)30000);
    return listen_for(VIP_INFINITE);
}
static VIP_RETURN poll_wait(void) { return listen_for(0); }
static VIP_RETURN accept_it(void) {
    VIP_VI_HANDLE other;
    VIP_RETURN r = VipCreateVi(nic, &attributes, NULL, NULL, &other);
    return r != VIP_SUCCESS ? r : VipConnectAccept(incoming, other);
}
static VIP_RETURN reject_it(void) { return VipConnectReject(incoming); }
static VIP_RETURN ask_once(void) { return request(vi, "no-waiter", SHORT); }
static VIP_RETURN ask_twice(void) { /* two threads that need a new connection to the agent, one of them in a hurry */
    VIP_VI_HANDLE other;
    VIP_RETURN r = VipCreateVi(nic, &attributes, NULL, NULL, &other);
    in_thread(ask, (void*)(size_t)30000);
    await_sleep(&asking);
    return r != VIP_SUCCESS ? r : request(other, "no-waiter", SHORT);
}
static VIP_RETURN disconnect(void) { return VipDisconnect(vi); }
static VIP_RETURN peer_ask(void) { return peer(SHORT); }
static VIP_RETURN peer_wait(void) {
    VIP_VI_ATTRIBUTES theirs;
    return VipConnectPeerWait(vi, &theirs);
}
static VIP_RETURN peer_done(void) {
    VIP_VI_ATTRIBUTES theirs;
    return VipConnectPeerDone(vi, &theirs);
}
static VIP_RETURN by_name(void) {
    char room[256];
    char name[] = "no-such-host.invalid";
    return VipNSGetHostByName(nic, name, (VIP_NET_ADDRESS*)room, 0);
}
static VIP_RETURN by_address(void) {
    char room[256], name[256];
    VIP_ULONG bytes = sizeof name;
    address(room, "");
    return VipNSGetHostByAddr(nic, (VIP_NET_ADDRESS*)room, name, &bytes);
}
static VIP_RETURN discover(void) {
    VIP_AUTODISCOVERY_LIST list;
    memset(&list, 0, sizeof list);
    return VipQuerySystemManagementInfo(nic, VIP_SMI_AUTODISCOVERY, &list);
}

/* ---- those that do not: one after the other, the agent's mood is nothing to them */

static void ignore_vi(VIP_PVOID context, VIP_NIC_HANDLE n, VIP_VI_HANDLE v, VIP_DESCRIPTOR* d) {
    (void)context, (void)n, (void)v, (void)d;
}
static void ignore_cq(VIP_PVOID context, VIP_NIC_HANDLE n, VIP_VI_HANDLE v, VIP_BOOLEAN receives) {
    (void)context, (void)n, (void)v, (void)receives;
}
static void ignore_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR* e) { (void)context, (void)e; }

#define STEP(call)       \
    do {                 \
        under_way = #call; \
        (void)(call);    \
    } while (0)

static VIP_RETURN others(void) {
    VIP_DESCRIPTOR* d = (VIP_DESCRIPTOR*)block;
    VIP_DESCRIPTOR* done;
    VIP_VI_HANDLE which;
    VIP_BOOLEAN receives, flag;
    VIP_VI_STATE state;
    VIP_VI_ATTRIBUTES a;
    VIP_MEM_ATTRIBUTES m = {0, VIP_TRUE, VIP_FALSE};
    VIP_PROTECTION_HANDLE tag;
    VIP_ULONG widths;
    VIP_EVENT_HANDLE event;
    memset(d, 0, sizeof *d);
    STEP(VipQueryNic(nic, &at));
    STEP(VipQueryVi(vi, &state, &a, &flag, &receives));
    STEP(VipSetViAttributes(vi, &attributes));
    STEP(VipCreatePtag(nic, &tag));
    STEP(VipDestroyPtag(nic, tag));
    STEP(VipSetMemAttributes(nic, block, memory, &m));
    STEP(VipQueryMem(nic, block, memory, &m));
    STEP(VipErrorCallback(nic, NULL, ignore_error));
    STEP(VipPostRecv(vi, d, memory));
    STEP(VipPostSend(vi, (VIP_DESCRIPTOR*)(block + 4096), memory));
    STEP(VipSendDone(vi, &done));
    STEP(VipRecvDone(vi, &done));
    STEP(VipSendWait(vi, 50, &done));
    STEP(VipRecvWait(vi, 50, &done));
    STEP(VipSendNotify(vi, NULL, ignore_vi));
    STEP(VipRecvNotify(vi, NULL, ignore_vi));
    STEP(VipResizeCQ(cq, 32));
    STEP(VipCQDone(cq, &which, &receives));
    STEP(VipCQWait(cq, 50, &which, &receives));
    STEP(VipCQNotify(cq, NULL, ignore_cq));
    STEP(VipAddTagCQ(cq, &event, 1, 1));
    STEP(VipPostDeferredSends(vi, VIP_FALSE, NULL));
    STEP(VipSetUserData(vi, NULL));
    STEP(VipGetUserData(vi));
    STEP(VipxQueryAtomics(nic, &widths));
    STEP(VipxQueryAtomicScope(nic, &flag));
    STEP(VipxQueryPinned(nic, &flag));
    STEP(VipxSetGiveWay(nic, VIP_FALSE));
    STEP(VipConnectPeerDone(vi, &a));
    STEP(VipDisconnect(vi));
    STEP(VipDestroyVi(vi));
    STEP(VipDestroyCQ(cq));
    STEP(VipDeregisterMem(nic, block, memory));
    STEP(VipNSShutdown(nic));
    return VIP_SUCCESS;
}

static const struct {
    const char* name;
    void (*before)(void); /* beyond prepare(); while the agent is in its right mind */
    VIP_RETURN (*call)(void);
} kCalls[] = {
    {"fresh", NULL, open_it},
    {"VipOpenNic", NULL, open_it},
    {"VipCloseNic", NULL, close_it},
    {"VipCloseNic-while-waiting", before_listening, close_it},
    {"VipCreateVi", NULL, create_vi},
    {"VipCreateCQ", NULL, create_cq},
    {"VipRegisterMem", NULL, register_much},
    {"VipxAllocMemory", before_allocating, allocate},
    {"VipConnectWait", NULL, wait_once},
    {"VipConnectWait-poll", NULL, poll_wait},
    {"VipConnectWait-infinite", NULL, wait_for_ever},
    {"VipConnectWait-infinite-asked", NULL, wait_until_asked},
    {"VipConnectAccept", before_incoming, accept_it},
    {"VipConnectReject", before_incoming, reject_it},
    {"VipConnectRequest", NULL, ask_once},
    {"VipConnectRequest-two-threads", NULL, ask_twice},
    {"VipDisconnect-while-pending", before_pending, disconnect},
    {"VipConnectPeerRequest", NULL, peer_ask},
    {"VipConnectPeerWait", before_peer, peer_wait},
    {"VipConnectPeerDone", before_peer, peer_done},
    {"VipNSGetHostByName", NULL, by_name},
    {"VipNSGetHostByAddr", NULL, by_address},
    {"VipQuerySystemManagementInfo", NULL, discover},
    {"others", NULL, others},
};

int main(int argc, char** argv) {
    size_t i;
    char line[8];
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (i = 0; i < sizeof kCalls / sizeof *kCalls; ++i) puts(kCalls[i].name);
        return 0;
    }
    if (argc != 3) return 2;
    for (i = 0; i < sizeof kCalls / sizeof *kCalls; ++i) {
        struct itimerspec limit;
        struct sigevent how;
        timer_t timer;
        double begun;
        VIP_RETURN r;
        const long ms = atol(argv[2]);
        if (strcmp(kCalls[i].name, argv[1]) != 0) continue;
        if (strcmp(argv[1], "fresh") != 0) prepare();
        if (kCalls[i].before != NULL) kCalls[i].before();
        puts("ready");
        fflush(stdout);
        if (fgets(line, sizeof line, stdin) == NULL) return 5;
        memset(&how, 0, sizeof how);
        how.sigev_notify = SIGEV_SIGNAL;
        how.sigev_signo = SIGALRM;
        signal(SIGALRM, hung);
        memset(&limit, 0, sizeof limit);
        limit.it_value.tv_sec = ms / 1000;
        limit.it_value.tv_nsec = ms % 1000 * 1000000;
        under_way = kCalls[i].name;
        begun = ms_now();
        if (timer_create(CLOCK_MONOTONIC, &how, &timer) != 0 || timer_settime(timer, 0, &limit, NULL) != 0) return 5;
        r = kCalls[i].call();
        printf("%s %d %.0f\n", kCalls[i].name, (int)r, ms_now() - begun);
        fflush(stdout);
        _exit(0);
    }
    return 2;
}
