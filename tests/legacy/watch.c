/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watch.c -- request and answer by looking at the status words only.
 *
 *   via_watch -s          [-d device] [-m messages] [-r u|d|r]
 *   via_watch -c hostname [-d device] [-m messages] [-r u|d|r]
 *
 * On a card the status of a descriptor is a word of the program's memory that
 * the card writes, so the fastest way to wait is a loop on that word; the
 * library is called when DONE is there, to take the descriptor off the queue.
 * The server is one process per client: it forks as inetd would, and the child
 * opens the NIC for itself.
 */
#include "viautil.h"
#include <sys/wait.h>

#define RECVS 8
#define BYTES 6000
#define SLOT (64 + 6016)        /* descriptor and data, a multiple of 64 */
#define SERVICE 0x57415443

int messages = 20, level = 'd';
char *device = DEFAULT_DEVICE;
VIP_VI_HANDLE vi;
char *region;
VIP_MEM_HANDLE handle;
long looks = 0;

#define DESCRIPTOR(i) ((VIP_DESCRIPTOR *)(region + (i) * SLOT))
#define DATA(i) (region + (i) * SLOT + 64)

void wait_status(VIP_DESCRIPTOR *d)
{
    volatile VIP_UINT32 *status = &d->CS.Status;

    while (!(*status & VIP_STATUS_DONE))
        looks++;
    if (*status & VIP_STATUS_ERROR_MASK)
        die("a descriptor completed in error");
}

void take(VIP_RETURN (*done)(VIP_VI_HANDLE, VIP_DESCRIPTOR **),
          VIP_DESCRIPTOR *expected)
{
    VIP_DESCRIPTOR *d;

    must(done(vi, &d), "Done");
    if (d != expected)
        die("another descriptor than the one seen");
}

void post_receive(int i)
{
    fill_descriptor(DESCRIPTOR(i), 0, DATA(i), BYTES, handle, 0);
    must(VipPostRecv(vi, DESCRIPTOR(i), handle), "VipPostRecv");
}

void send_one(int length, int seed)
{
    VIP_DESCRIPTOR *d = DESCRIPTOR(RECVS);

    fill_pattern(DATA(RECVS), length, 0, seed);
    fill_descriptor(d, VIP_CONTROL_IMMEDIATE, DATA(RECVS), length, handle, seed);
    must(VipPostSend(vi, d, handle), "VipPostSend");
    wait_status(d);
    take(VipSendDone, d);
}

int receive_one(int i, int seed)
{
    VIP_DESCRIPTOR *d = DESCRIPTOR(i % RECVS);
    int length;

    wait_status(d);
    if (d->CS.ImmediateData != (VIP_UINT32)seed)
        die("another message than the expected one");
    length = d->CS.Length;
    if (wrong_byte(DATA(i % RECVS), length, 0, seed) != -1)
        die("a wrong byte");
    take(VipRecvDone, d);
    post_receive(i % RECVS);
    return length;
}

void prepare(void)
{
    int i;

    open_nic(device, 0, 0);
    region = page_alloc((RECVS + 1) * SLOT);
    handle = register_memory(region, (RECVS + 1) * SLOT, 0, 0);
    vi = new_vi(level_of(level), nicattr.MaxTransferSize, 0, 0, 0, 0);
    for (i = 0; i < RECVS; i++)
        post_receive(i);
}

void server(void)
{
    VIP_VI_ATTRIBUTES va;
    VIP_NET_ADDRESS *local, *remote;
    VIP_CONN_HANDLE connection;
    int i, status;
    pid_t child = fork();

    if (child == -1)
        die("fork");
    if (child) {                /* until the client has gone */
        if (waitpid(child, &status, 0) != child || status != 0)
            die("the process for this client failed");
        printf("server: %d requests answered by process of its own\n", messages);
        return;
    }
    prepare();
    local = local_address(SERVICE, level, 0);
    remote = new_address();
    must(VipConnectWait(nic, local, VIP_INFINITE, remote, &va, &connection),
         "VipConnectWait");
    must(VipConnectAccept(connection, vi), "VipConnectAccept");
    for (i = 0; i < messages; i++)
        send_one(receive_one(i, i), -i);
    fflush(stdout);
    _exit(0);
}

void client(char *host)
{
    int i;

    prepare();
    request_connection(vi, local_address(SERVICE, level, getpid()),
                       remote_address(host, SERVICE, level, 0));
    for (i = 0; i < messages; i++) {
        send_one(i * 997 % BYTES, i);
        if (receive_one(i, -i) != i * 997 % BYTES)
            die("an answer of another length");
    }
    printf("client: %d answers, every status seen in memory\n", messages);
}

int main(int argc, char **argv)
{
    int c, is_server = 0;
    char *host = 0;

    myname = "watch";
    while ((c = getopt(argc, argv, "sc:d:m:r:")) != -1)
        switch (c) {
        case 's': is_server = 1; break;
        case 'c': host = optarg; break;
        case 'd': device = optarg; break;
        case 'm': messages = atoi(optarg); break;
        case 'r': level = optarg[0]; break;
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
