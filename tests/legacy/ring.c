/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ring.c -- processes in a ring, with a log file each.
 *
 *   via_ring -r rank -n size [-k laps] [-l log file] [-x u|d|r] [-j job]
 *            [-d device]
 *
 * Each process has one connection to the next and one to the previous.  In a
 * run of two they join the same two NICs under the same pair of addresses.
 * A token goes round, and the memory handles of all are summed as ints.
 *
 * The program has functions and variables whose names other libraries took
 * later; they are its own and nobody else may call them.
 */
#include "viautil.h"
#include <fcntl.h>
#include <errno.h>

#define SLOTS 16
#define BYTES 1024              /* a slot: descriptor and data */
#define RING 0x52494e47

int true = 1;
int false = 0;
int nics = 1;                   /* third int of a discriminator, as it was */
int interface = 0;
int post = 0;                   /* messages posted */

/* semaphores by number, a matter of this program alone */
int sem_value[4];
int sem_calls = 0;

struct link {
    VIP_VI_HANDLE vi;
    char *recv;                 /* SLOTS slots */
    char *send;                 /* one slot */
    int taken;
} next, prev;

int rank = -1, size = 0, laps = 50, level = 0, job = 1;
char *device = DEFAULT_DEVICE, *log_name = 0;
char *region;
VIP_MEM_HANDLE handle;

int sem_open(int which, int value)
{
    sem_calls++;
    sem_value[which] = value;
    return which;
}

int sem_wait(int which)
{
    sem_calls++;
    if (which < 0 || which > 3 || sem_value[which] <= 0)
        die("sem_wait was called by somebody else");
    return --sem_value[which];
}

void sem_close(int which, int reason, char *why)
{
    sem_calls++;
    if (which < 0 || which > 3)
        die(why);
    sem_value[which] = reason;
}

void post_slot(l, i)
struct link *l;
int i;
{
    VIP_DESCRIPTOR *d = (VIP_DESCRIPTOR *)(l->recv + i * BYTES);

    fill_descriptor(d, VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE,
                    (char *)(d + 1), BYTES - sizeof *d, handle, 0);
    must(VipPostRecv(l->vi, d, handle), "VipPostRecv");
}

void make_link(l, memory)
struct link *l;
char *memory;
{
    int i;

    l->vi = new_vi(level_of(level), nicattr.MaxTransferSize, 0, 0, NULL, NULL);
    l->recv = memory;
    l->send = memory + SLOTS * BYTES;
    for (i = 0; i < SLOTS; i++)
        post_slot(l, i);
}

/* own rank, other rank, number of NICs: the same for both links of a pair */
void connect_next()
{
    int to = (rank + 1) % size;

    request_connection(next.vi, local_address(RING + job, rank, to * 256 + nics),
                       remote_address(0, RING + job, to, rank * 256 + nics));
}

void connect_prev()
{
    int from = (rank + size - 1) % size;
    VIP_NET_ADDRESS *remote = new_address();
    VIP_VI_ATTRIBUTES va;
    VIP_CONN_HANDLE conn;

    must(VipConnectWait(nic,
                        local_address(RING + job, rank, from * 256 + nics),
                        60000, remote, &va, &conn), "VipConnectWait");
    if (get_discriminator(remote, 1) != from)
        die("somebody else called");
    must(VipConnectAccept(conn, prev.vi), "VipConnectAccept");
}

void send_int(l, value, sequence)
struct link *l;
int value, sequence;
{
    VIP_DESCRIPTOR *d = (VIP_DESCRIPTOR *)l->send, *done;
    VIP_RETURN rc;

    *(int *)(d + 1) = value;
    fill_descriptor(d, VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE,
                    (char *)(d + 1), sizeof value, handle, sequence);
    must(VipPostSend(l->vi, d, handle), "VipPostSend");
    do
        rc = VipSendDone(l->vi, &done);
    while (rc == VIP_NOT_DONE);
    must(rc, "VipSendDone");
    if (done != d)
        die("another send is done");
    post++;
}

int recv_int(l, sequence)
struct link *l;
int sequence;
{
    VIP_DESCRIPTOR *d;
    VIP_RETURN rc;
    int value;

    do
        rc = VipRecvDone(l->vi, &d);
    while (rc == VIP_NOT_DONE);
    must(rc, "VipRecvDone");
    if ((char *)d != l->recv + l->taken * BYTES)
        die("receives complete in another order than posted");
    if ((int)d->CS.ImmediateData != sequence || d->CS.Length != sizeof value)
        die("the number on a message is wrong");
    value = *(int *)(d + 1);
    post_slot(l, l->taken);
    l->taken = (l->taken + 1) % SLOTS;
    return value;
}

/* once round to add up, once round to tell; both directions are used */
int sum_of_all(value, sequence)
int value, sequence;
{
    int sum;

    if (rank == 0) {
        send_int(&next, value, sequence);
        sum = recv_int(&prev, sequence);
        send_int(&prev, sum, sequence);
        if (recv_int(&next, sequence) != sum)
            die("the sum came back changed");
        return sum;
    }
    sum = (int)((unsigned)recv_int(&prev, sequence) + (unsigned)value);
    send_int(&next, sum, sequence);
    sum = recv_int(&next, sequence);
    send_int(&prev, sum, sequence);
    return sum;
}

void redirect_output()
{
    int fd;

    if (log_name == 0)
        return;
    fd = open(log_name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd < 0) {
        fprintf(stderr, "%s: %s: %s\n", myname, log_name, strerror(errno));
        exit(1);
    }
    fflush(stdout);
    dup2(fd, 1);
    close(fd);
}

int main(argc, argv)
int argc;
char **argv;
{
    int c, i, token, sum, links = 2 * (SLOTS + 1) * BYTES;

    myname = "via_ring";
    while ((c = getopt(argc, argv, "r:n:k:l:x:j:d:")) != -1)
        switch (c) {
        case 'r': rank = atoi(optarg); break;
        case 'n': size = atoi(optarg); break;
        case 'k': laps = atoi(optarg); break;
        case 'l': log_name = optarg; break;
        case 'x': level = optarg[0]; break;
        case 'j': job = atoi(optarg); break;
        case 'd': device = optarg; break;
        default:
            fprintf(stderr, "usage: via_ring -r rank -n size [-k laps] "
                            "[-l log file] [-x u|d|r] [-j job]\n");
            return 2;
        }
    if (size < 2 || size > 255 || rank < 0 || rank >= size)
        die("rank and size, please");
    sem_open(0, 1);
    if (system("true") != 0)
        die("system before the NIC is open");
    open_nic(device, NULL, fatal_callback);
    printf("rank %d of %d starts\n", rank, size);
    redirect_output();
    if (system("true") != 0)
        die("system after the NIC is open");

    region = page_alloc(links);
    handle = register_memory(region, links, 0, 0);
    make_link(&next, region);
    make_link(&prev, region + links / 2);
    if (rank == 0) {
        connect_next();
        if (system("true") != 0)
            die("system with a connection");
        connect_prev();
    } else {
        connect_prev();
        if (system("true") != 0)
            die("system with a connection");
        connect_next();
    }

    token = 0;
    for (i = 1; i <= laps; i++)
        if (rank == 0) {
            send_int(&next, token + 1, i);
            token = recv_int(&prev, i);
            if (token != i * size)
                die("the token was not counted by everybody");
        } else
            send_int(&next, recv_int(&prev, i) + 1, i);
    sum = sum_of_all((int)handle, laps + 1);
    if (sum_of_all(sum, laps + 2) != (int)((unsigned)size * (unsigned)sum))
        die("not everybody has the same sum of handles");

    sem_wait(0);
    sem_close(0, 0, "unused");
    if (sem_calls != 3 || sem_value[0] != 0 || true != 1 || false != 0 ||
        post != laps + 4 || interface != 0)
        die("somebody used what is mine");
    printf("rank %d of %d: %d laps, token and sums right\n", rank, size, laps);
    fflush(stdout);
    return 0;
}
