/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * notify.c -- a file server's way to wait: one completion queue for all
 * clients, handlers that ask for the next entry again, and threads that wait
 * for entries beside them.
 *
 *   via_notify -s -n clients     [-d device] [-m messages] [-r u|d|r]
 *   via_notify -c hostname -w how [-d device] [-m messages] [-r u|d|r]
 *
 * A client leaves by VipDisconnect (d), by VipCloseNic (c), by the end of its
 * process (e), or before it has its last answer (b).  Every descriptor of a
 * client is used once, so whoever takes an entry may be late.
 */
#include "viautil.h"
#include <pthread.h>

#define MAXCLIENTS 64
#define BYTES 2000
#define SLOT 2176               /* two descriptors and data, times 64 */
#define SERVICE 0x4e544659
#define HANDLERS 3
#define WAITERS 2

int nclients = 1, messages = 20, level = 'd', how = 'd';
char *device = DEFAULT_DEVICE;
VIP_CQ_HANDLE cq;
VIP_MEM_HANDLE handle;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int received = 0, answered = 0, sent = 0, left = 0, lost = 0, closing = 0;

void add(int *counter)
{
    pthread_mutex_lock(&lock);
    ++*counter;
    pthread_mutex_unlock(&lock);
}

int value(int *counter)
{
    int n;

    pthread_mutex_lock(&lock);
    n = *counter;
    pthread_mutex_unlock(&lock);
    return n;
}

/* a request is answered out of its own buffer */
void take_receive(VIP_VI_HANDLE vi)
{
    VIP_DESCRIPTOR *d, *answer;
    VIP_RETURN rc = VipRecvDone(vi, &d);

    if (d == 0)
        die("an entry without a descriptor");
    if (rc == VIP_SUCCESS) {
        answer = d + 1;
        fill_descriptor(answer, VIP_CONTROL_IMMEDIATE, (char *)(d + 2),
                        d->CS.Length, handle, ~d->CS.ImmediateData);
        must(VipPostSend(vi, answer, handle), "VipPostSend");
        add(&answered);
    } else if (!(d->CS.Status & VIP_STATUS_DESC_FLUSHED_ERROR))
        die("a receive failed");
    else if (d->DS[0].Local.Length == 0)
        add(&left);
    add(&received);
}

/* one entry of the queue; an answer nobody takes any more is no failure */
void serve(VIP_VI_HANDLE vi, VIP_BOOLEAN is_recv)
{
    VIP_DESCRIPTOR *d;

    if (is_recv) {
        take_receive(vi);
        return;
    }
    VipSendDone(vi, &d);
    if (d == 0)
        die("an entry without a descriptor");
    add(&sent);
}

void handler(VIP_PVOID context, VIP_NIC_HANDLE n, VIP_VI_HANDLE vi,
             VIP_BOOLEAN is_recv)
{
    VIP_RETURN rc;

    if (n != nic)
        die("a handler for another NIC");
    serve(vi, is_recv);
    rc = VipCQNotify(cq, context, handler);
    if (!value(&closing))
        must(rc, "VipCQNotify");
}

void *waiter(void *unused)
{
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN is_recv;
    VIP_RETURN rc;

    while ((rc = VipCQWait(cq, VIP_INFINITE, &vi, &is_recv)) == VIP_SUCCESS)
        serve(vi, is_recv);
    if (rc != VIP_INVALID_PARAMETER || !value(&closing))
        die("VipCQWait");
    return unused;
}

void farewell(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *e)
{
    if (e->ErrorCode != VIP_ERROR_CONN_LOST)
        fatal_callback(context, e);
    add(&lost);
}

/* all receives of one client; the last has no room and waits for the end */
void post_receives(VIP_VI_HANDLE vi, char *slots)
{
    VIP_DESCRIPTOR *d;
    int i;

    for (i = 0; i <= messages; i++) {
        d = (VIP_DESCRIPTOR *)(slots + i * SLOT);
        fill_descriptor(d, 0, (char *)(d + 2), i == messages ? 0 : BYTES, handle, 0);
        must(VipPostRecv(vi, d, handle), "VipPostRecv");
    }
}

void server(void)
{
    VIP_VI_HANDLE vi[MAXCLIENTS];
    VIP_VI_ATTRIBUTES va;
    VIP_CONN_HANDLE connection;
    VIP_NET_ADDRESS *local, *remote;
    pthread_t thread[WAITERS];
    long bytes = (long)(messages + 1) * SLOT;
    char *memory;
    int i;

    open_nic(device, 0, farewell);
    memory = page_alloc(nclients * bytes);
    handle = register_memory(memory, nclients * bytes, 0, 0);
    must(VipCreateCQ(nic, 1, &cq), "VipCreateCQ");
    for (i = 0; i < HANDLERS; i++)
        must(VipCQNotify(cq, 0, handler), "VipCQNotify");
    for (i = 0; i < WAITERS; i++)
        pthread_create(&thread[i], 0, waiter, 0);
    local = local_address(SERVICE, level, 0);
    remote = new_address();
    for (i = 0; i < nclients; i++) {    /* the queue grows under its waiters */
        must(VipResizeCQ(cq, (i + 1) * (2 * messages + 1)), "VipResizeCQ");
        vi[i] = new_vi(level_of(level), BYTES, 0, 0, cq, cq);
        post_receives(vi[i], memory + i * bytes);
        must(VipConnectWait(nic, local, VIP_INFINITE, remote, &va, &connection),
             "VipConnectWait");
        must(VipConnectAccept(connection, vi[i]), "VipConnectAccept");
    }
    while (value(&received) < nclients * (messages + 1) ||
           value(&sent) < value(&answered) || value(&lost) < nclients)
        usleep(10000);  /* sleeps: between two looks */
    add(&closing);
    if (VipDestroyCQ(cq) != VIP_ERROR_RESOURCE)
        die("a queue in use was destroyed");
    for (i = 0; i < nclients; i++) {
        must(VipDisconnect(vi[i]), "VipDisconnect");
        must(VipDestroyVi(vi[i]), "VipDestroyVi");
    }
    must(VipDestroyCQ(cq), "VipDestroyCQ");
    for (i = 0; i < WAITERS; i++)
        pthread_join(thread[i], 0);
    if (sent != answered || received != nclients * (messages + 1))
        die("there were more entries than descriptors");
    printf("server: %d answered, %d clients left, %d times told\n", answered, left, lost);
}

void client(char *host)
{
    VIP_VI_HANDLE vi;
    VIP_DESCRIPTOR *d;
    long bytes = (long)(messages + 2) * SLOT;
    char *memory, *data;
    int i, length;

    open_nic(device, 0, 0);
    memory = page_alloc(bytes);
    handle = register_memory(memory, bytes, 0, 0);
    vi = new_vi(level_of(level), BYTES, 0, 0, 0, 0);
    post_receives(vi, memory);
    d = (VIP_DESCRIPTOR *)(memory + (messages + 1) * SLOT);
    data = (char *)(d + 2);
    request_connection(vi, local_address(SERVICE, level, getpid()),
                       remote_address(host, SERVICE, level, 0));
    for (i = 0; i < messages; i++) {
        length = i * 313 % BYTES;
        fill_pattern(data, length, 0, i);
        fill_descriptor(d, VIP_CONTROL_IMMEDIATE, data, length, handle, i);
        must(VipPostSend(vi, d, handle), "VipPostSend");
        must(VipSendWait(vi, VIP_INFINITE, &d), "VipSendWait");
        if (how == 'b' && i == messages - 1)
            break;
        must(VipRecvWait(vi, VIP_INFINITE, &d), "VipRecvWait");
        if ((int)d->CS.Length != length || d->CS.ImmediateData != ~(VIP_UINT32)i ||
            wrong_byte((char *)(d + 2), length, 0, i) != -1)
            die("another answer than the expected one");
        d = (VIP_DESCRIPTOR *)(memory + (messages + 1) * SLOT);
    }
    printf("client: asked %d times\n", messages);
    if (how == 'd')
        must(VipDisconnect(vi), "VipDisconnect");
    if (how == 'c')
        must(VipCloseNic(nic), "VipCloseNic");
}

int main(int argc, char **argv)
{
    int c, is_server = 0;
    char *host = 0;

    myname = "notify";
    while ((c = getopt(argc, argv, "sc:d:m:n:r:w:")) != -1)
        switch (c) {
        case 's': is_server = 1; break;
        case 'c': host = optarg; break;
        case 'd': device = optarg; break;
        case 'm': messages = atoi(optarg); break;
        case 'n': nclients = atoi(optarg); break;
        case 'r': level = optarg[0]; break;
        case 'w': how = optarg[0]; break;
        default: die("usage");
        }
    if (is_server)
        server();
    else if (host)
        client(host);
    else
        die("-s or -c hostname");
    return 0;
}
