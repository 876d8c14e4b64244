/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * names.c -- a program of many short names, which needs no header of the
 * system beside those of C and threads: its functions and variables have names
 * of calls on sockets and files.  Two threads connect to each other, exchange
 * messages and look up names.
 *
 *   via_names [device]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>
#include <vipl.h>

#define MESSAGES 50
#define BYTES 3000

VIP_NIC_HANDLE nic;
VIP_NIC_ATTRIBUTES nicattr;
VIP_MEM_HANDLE handle;
char *memory;
int called = 0;

/* variables */
int access = 8, poll = 9;

void die(char *what, int code)
{
    fprintf(stderr, "via_names: %s: %d\n", what, code);
    exit(1);
}

void must(VIP_RETURN rc, char *what)
{
    if (rc != VIP_SUCCESS)
        die(what, (int)rc);
}

/* what programs do under these names differs; here each counts its calls */
void clone(void) { called++; }
void kill(void) { called++; }
void bind(int a) { called += a; }
void listen(char *service) { called += *service == 'v'; }
void socket(double x) { called += x > 0; }
void shutdown(void) { called++; }
void accept(void) { called++; }
void open(char *name) { called += *name == 'v'; }
void close(void) { called++; }
void read(char *name, double *to) { called += *name == 'v'; *to = 1; }
void write(char *name, double what) { called += *name == 'v' && what > 0; }
void unlink(int *list) { called++; *list = 0; }
void sendto(void) { called++; }
void recvfrom(void) { called++; }

VIP_DESCRIPTOR *descriptor(int slot, char *data)
{
    VIP_DESCRIPTOR *d = (VIP_DESCRIPTOR *)(memory + 64 * slot);

    memset(d, 0, sizeof *d);
    d->CS.SegCount = 1;
    d->CS.Length = BYTES;
    d->DS[0].Local.Data.Address = data;
    d->DS[0].Local.Handle = handle;
    d->DS[0].Local.Length = BYTES;
    return d;
}

void send(VIP_VI_HANDLE vi, int slot, int what)
{
    VIP_DESCRIPTOR *d;

    if (slot != 1 && slot != 3)
        die("send was called by somebody else", slot);
    d = descriptor(slot, memory + 4096 * (1 + slot));
    memset(memory + 4096 * (1 + slot), what, BYTES);
    must(VipPostSend(vi, d, handle), "VipPostSend");
    must(VipSendWait(vi, VIP_INFINITE, &d), "VipSendWait");
}

void recv(VIP_VI_HANDLE vi, int what)
{
    VIP_DESCRIPTOR *d;
    char *data;

    if (what < 0 || what >= MESSAGES)
        die("recv was called by somebody else", what);
    must(VipRecvWait(vi, 20000, &d), "VipRecvWait");
    data = (char *)d->DS[0].Local.Data.Address;
    if (d->CS.Length != BYTES || data[0] != (char)what || data[BYTES - 1] != (char)what)
        die("another message came", what);
    d->CS.Status = 0;
    must(VipPostRecv(vi, d, handle), "VipPostRecv");
}

VIP_VI_HANDLE new_vi(int slot)
{
    VIP_VI_ATTRIBUTES a;
    VIP_VI_HANDLE vi;

    memset(&a, 0, sizeof a);
    a.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
    a.MaxTransferSize = BYTES;
    must(VipCreateVi(nic, &a, NULL, NULL, &vi), "VipCreateVi");
    must(VipPostRecv(vi, descriptor(slot, memory + 4096 * (1 + slot)), handle), "VipPostRecv");
    return vi;
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

void *server(void *unused)
{
    VIP_VI_HANDLE vi = new_vi(0);
    VIP_CONN_HANDLE connection;
    VIP_VI_ATTRIBUTES a;
    VIP_DESCRIPTOR *d;
    int i;

    (void)unused;
    must(VipConnectWait(nic, address("names"), 20000, address("somebody"), &a, &connection), "VipConnectWait");
    must(VipConnectAccept(connection, vi), "VipConnectAccept");
    for (i = 0; i < MESSAGES; i++) {
        recv(vi, i);
        send(vi, 1, i);
    }
    if (VipRecvWait(vi, 20000, &d) != VIP_DESCRIPTOR_ERROR)
        die("the client has not left", 0);
    must(VipDisconnect(vi), "VipDisconnect");
    must(VipDestroyVi(vi), "VipDestroyVi");
    return NULL;
}

void connect(VIP_VI_HANDLE vi)
{
    VIP_VI_ATTRIBUTES a;
    VIP_RETURN rc;

    do
        rc = VipConnectRequest(vi, address("client"), address("names"), 20000, &a);
    while (rc == VIP_NO_MATCH);
    must(rc, "VipConnectRequest");
}

int main(int argc, char **argv)
{
    VIP_VI_HANDLE vi;
    VIP_NET_ADDRESS *a;
    pthread_t thread;
    double x = 0;
    int i;

    must(VipOpenNic(argc > 1 ? argv[1] : "/dev/via_eth0", &nic), "VipOpenNic");
    must(VipQueryNic(nic, &nicattr), "VipQueryNic");
    must(VipNSInit(nic, NULL), "VipNSInit");
    a = address("");
    must(VipNSGetHostByName(nic, "localhost", a, 0), "VipNSGetHostByName");
    if (VipNSGetHostByName(nic, "no-such-host.invalid", a, 0) != VIP_ERROR_NAMESERVICE)
        die("a host that does not exist was found", 0);
    memory = (char *)calloc(1, 7 * 4096);
    memory += 4096 - (unsigned long)memory % 4096;
    must(VipRegisterMem(nic, memory, 6 * 4096, NULL, &handle), "VipRegisterMem");
    if (pthread_create(&thread, NULL, server, NULL) != 0)
        die("pthread_create", 0);
    vi = new_vi(2);
    connect(vi);
    for (i = 0; i < MESSAGES; i++) {
        send(vi, 3, i);
        recv(vi, i);
    }
    must(VipDisconnect(vi), "VipDisconnect");
    must(VipDestroyVi(vi), "VipDestroyVi");
    pthread_join(thread, NULL);
    must(VipCloseNic(nic), "VipCloseNic");
    if (called != 0)
        die("a function was called by somebody else", called);
    clone(); kill(); bind(1); listen("vi"); socket(1.0); shutdown(); accept();
    open("vi"); close(); read("vi", &x); write("vi", x); unlink(&i); sendto(); recvfrom();
    if (access != 8 || poll != 9)
        die("a variable was changed by somebody else", 0);
    printf("via_names: %d messages\n", 2 * MESSAGES);
    return 0;
}
