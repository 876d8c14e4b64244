/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * traps.c -- a program that owns every name of the C library which ISO C
 * leaves to it and which a library of ours calls.  Each of its functions of
 * these names says its name and aborts.  Client and server connect, exchange
 * messages, write by RDMA, wait at a completion queue, by a handler and at a
 * VI, disconnect and close.
 *
 *   via_traps -s [device]
 *   via_traps -c [device]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>
#include <vipl.h>

#define MESSAGES 24             /* each way; the second half is for handlers */
#define MOST 60000
#define SLOT 61440
#define BYTES ((2 * MESSAGES + 4) * SLOT)

void trapped(char *name)
{
    fprintf(stderr, "via_traps: %s was called by somebody else\n", name);
    abort();
}

/* syscall is left out: the C++ run-time library calls it, too */
#define NAME(name) \
    void trap_##name(void) __asm__(#name); \
    void trap_##name(void) { trapped(#name); }
#define NAME_OF_FILES(name) NAME(name)
#include "../../core/libc/names.def"

VIP_NIC_HANDLE nic;
VIP_NIC_ATTRIBUTES nicattr;
VIP_MEM_HANDLE handle;
VIP_CQ_HANDLE cq;
VIP_VI_HANDLE vi;
char *memory;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t change = PTHREAD_COND_INITIALIZER;
int handled = 0, sizes[4] = {0, 100, 5000, MOST};

void die(char *what, int code)
{
    fprintf(stderr, "via_traps: %s: %d\n", what, code);
    exit(1);
}

void must(VIP_RETURN rc, char *what)
{
    if (rc != VIP_SUCCESS)
        die(what, (int)rc);
}

void farewell(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *e)
{
    if (e->ErrorCode != VIP_ERROR_CONN_LOST)
        die("asynchronous error", (int)e->ErrorCode);
}

/* a slot is a descriptor and, behind it, its data */
char *data_of(VIP_DESCRIPTOR *d) { return (char *)d + 512; }

VIP_DESCRIPTOR *descriptor(int slot, int control, int length)
{
    VIP_DESCRIPTOR *d = (VIP_DESCRIPTOR *)(memory + slot * SLOT);

    memset(d, 0, 128);
    d->CS.Control = control;
    d->CS.Length = length;
    d->CS.SegCount = (control & VIP_CONTROL_OP_MASK) == VIP_CONTROL_OP_RDMAWRITE ? 2 : 1;
    d->DS[d->CS.SegCount - 1].Local.Data.Address = data_of(d);
    d->DS[d->CS.SegCount - 1].Local.Handle = handle;
    d->DS[d->CS.SegCount - 1].Local.Length = length;
    return d;
}

VIP_NET_ADDRESS *address(char *discriminator)
{
    VIP_NET_ADDRESS *a = (VIP_NET_ADDRESS *)calloc(1, 64);

    a->HostAddressLen = nicattr.NicAddressLen;
    a->DiscriminatorLen = strlen(discriminator);
    memcpy(a->HostAddress, nicattr.LocalNicAddress, nicattr.NicAddressLen);
    memcpy(a->HostAddress + nicattr.NicAddressLen, discriminator, strlen(discriminator));
    return a;
}

/* of message i, which the other end has sent */
void check(VIP_DESCRIPTOR *d, int i)
{
    int n = sizes[i % 4];

    if ((int)d->CS.Length != n || (n > 0 && (data_of(d)[0] != (char)i || data_of(d)[n - 1] != (char)i)))
        die("another message came", i);
}

void send_message(int i)
{
    VIP_DESCRIPTOR *d = descriptor(MESSAGES + i, VIP_CONTROL_OP_SENDRECV, sizes[i % 4]);

    memset(data_of(d), i, sizes[i % 4]);
    must(VipPostSend(vi, d, handle), "VipPostSend");
    must(VipSendWait(vi, VIP_INFINITE, &d), "VipSendWait");
}

void on_receive(VIP_PVOID context, VIP_NIC_HANDLE n, VIP_VI_HANDLE which, VIP_BOOLEAN is_recv)
{
    VIP_DESCRIPTOR *d;

    must(VipRecvDone(which, &d), "VipRecvDone");
    pthread_mutex_lock(&lock);
    check(d, MESSAGES / 2 + handled);
    handled++;
    pthread_cond_signal(&change);
    pthread_mutex_unlock(&lock);
}

void receive_message(int i)
{
    VIP_DESCRIPTOR *d;
    VIP_VI_HANDLE which;
    VIP_BOOLEAN is_recv;

    if (i < MESSAGES / 2) {
        must(VipCQWait(cq, VIP_INFINITE, &which, &is_recv), "VipCQWait");
        must(VipRecvDone(which, &d), "VipRecvDone");
        check(d, i);
        return;
    }
    must(VipCQNotify(cq, NULL, on_receive), "VipCQNotify");
    pthread_mutex_lock(&lock);
    while (handled <= i - MESSAGES / 2)
        pthread_cond_wait(&change, &lock);
    pthread_mutex_unlock(&lock);
}

/* where the other end may write, in a message; what comes is of the other end */
void exchange_windows(VIP_UINT64 *start, VIP_MEM_HANDLE *key)
{
    VIP_DESCRIPTOR *d = descriptor(2 * MESSAGES, VIP_CONTROL_OP_SENDRECV, 16);
    VIP_UINT64 own = (VIP_UINT64)(unsigned long)data_of(descriptor(2 * MESSAGES + 3, 0, MOST));
    VIP_VI_HANDLE which;
    VIP_BOOLEAN is_recv;

    memcpy(data_of(d), &own, 8);
    memcpy(data_of(d) + 8, &handle, sizeof handle);
    must(VipPostSend(vi, d, handle), "VipPostSend");
    must(VipSendWait(vi, VIP_INFINITE, &d), "VipSendWait");
    must(VipCQWait(cq, VIP_INFINITE, &which, &is_recv), "VipCQWait");
    must(VipRecvDone(which, &d), "VipRecvDone");
    memcpy(start, data_of(d), 8);
    memcpy(key, data_of(d) + 8, sizeof *key);
}

/* the immediate data says that all is there */
void write_into_peer(VIP_UINT64 start, VIP_MEM_HANDLE key, int what)
{
    VIP_DESCRIPTOR *d = descriptor(2 * MESSAGES + 2, VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE, MOST);

    d->CS.ImmediateData = what;
    d->DS[0].Remote.Data.AddressBits = start;
    d->DS[0].Remote.Handle = key;
    memset(data_of(d), what, MOST);
    must(VipPostSend(vi, d, handle), "VipPostSend");
    must(VipSendWait(vi, VIP_INFINITE, &d), "VipSendWait");
}

void await_write(int what)
{
    VIP_DESCRIPTOR *d;
    VIP_VI_HANDLE which;
    VIP_BOOLEAN is_recv;
    char *written = data_of((VIP_DESCRIPTOR *)(memory + (2 * MESSAGES + 3) * SLOT));

    must(VipCQWait(cq, VIP_INFINITE, &which, &is_recv), "VipCQWait");
    must(VipRecvDone(which, &d), "VipRecvDone");
    if ((int)d->CS.ImmediateData != what || written[0] != (char)what || written[MOST - 1] != (char)what)
        die("another RDMA write came", (int)d->CS.ImmediateData);
}

void begin(char *device)
{
    VIP_VI_ATTRIBUTES a;
    VIP_MEM_ATTRIBUTES ma;
    int i;

    must(VipOpenNic(device, &nic), "VipOpenNic");
    must(VipErrorCallback(nic, NULL, farewell), "VipErrorCallback");
    must(VipQueryNic(nic, &nicattr), "VipQueryNic");
    memory = (char *)calloc(1, BYTES + 4096);
    memory += 4096 - (unsigned long)memory % 4096;
    memset(&ma, 0, sizeof ma);
    ma.EnableRdmaWrite = VIP_TRUE;
    must(VipRegisterMem(nic, memory, BYTES, &ma, &handle), "VipRegisterMem");
    must(VipCreateCQ(nic, 2 * MESSAGES, &cq), "VipCreateCQ");
    memset(&a, 0, sizeof a);
    a.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
    a.MaxTransferSize = MOST;
    a.EnableRdmaWrite = VIP_TRUE;
    must(VipCreateVi(nic, &a, NULL, cq, &vi), "VipCreateVi");
    for (i = 0; i < MESSAGES; i++)
        must(VipPostRecv(vi, descriptor(i, 0, MOST), handle), "VipPostRecv");
}

/* the receives that no message was for */
void end(void)
{
    VIP_DESCRIPTOR *d;

    must(VipDisconnect(vi), "VipDisconnect");
    do
        VipRecvDone(vi, &d);
    while (d != NULL);
    must(VipDestroyVi(vi), "VipDestroyVi");
    must(VipDestroyCQ(cq), "VipDestroyCQ");
    must(VipDeregisterMem(nic, memory, handle), "VipDeregisterMem");
    must(VipCloseNic(nic), "VipCloseNic");
}

/* further receives, each in the slot of a former one */
void post_more(int n)
{
    int i;

    for (i = 0; i < n; i++)
        must(VipPostRecv(vi, descriptor(i, 0, MOST), handle), "VipPostRecv");
}

void talk(int first)
{
    VIP_UINT64 start;
    VIP_MEM_HANDLE key;
    int i;

    for (i = 0; i < MESSAGES; i++) {
        if (first)
            send_message(i);
        receive_message(i);
        if (i == 4)
            post_more(3);
        if (!first)
            send_message(i);
    }
    exchange_windows(&start, &key);
    if (first)
        write_into_peer(start, key, 77);
    await_write(first ? 78 : 77);
    if (!first)
        write_into_peer(start, key, 78);
}

void server(void)
{
    VIP_CONN_HANDLE connection;
    VIP_VI_ATTRIBUTES a;
    VIP_DESCRIPTOR *d;

    must(VipConnectWait(nic, address("traps"), VIP_INFINITE, address("somebody"), &a, &connection), "VipConnectWait");
    must(VipConnectAccept(connection, vi), "VipConnectAccept");
    talk(0);
    while (VipRecvDone(vi, &d) == VIP_NOT_DONE)     /* until the client has left */
        ;
}

void client(void)
{
    VIP_VI_ATTRIBUTES a;
    VIP_RETURN rc;

    do
        rc = VipConnectRequest(vi, address("client"), address("traps"), VIP_INFINITE, &a);
    while (rc == VIP_NO_MATCH);
    must(rc, "VipConnectRequest");
    talk(1);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        die("-s or -c", argc);
    begin(argc > 2 ? argv[2] : "/dev/via_eth0");
    if (strcmp(argv[1], "-s") == 0)
        server();
    else
        client();
    end();
    printf("via_traps: %d messages each way\n", MESSAGES);
    return 0;
}
