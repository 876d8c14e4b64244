/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * alltoall.c -- everybody with everybody, connected peer to peer.
 *
 *   via_alltoall -r rank -n size [-k rounds] [-w ms] [-l u|d|r] [-j job]
 *                [-d device] [hosts ...]
 *
 * All requests are started first and waited for afterwards.  One completion
 * queue serves both queues of all VIs.  After the last barrier each process
 * simply ends; the error callback stays installed and is deadly.
 */
#include "viautil.h"

#define MAXRANKS 1024
#define SLOT 16384              /* descriptor and data of one message */
#define NRECV 4                 /* a peer is at most two messages ahead */
#define A2A 0x41324100

#define K_DATA 1
#define K_BARRIER 2

struct header {
    int kind, from, to, round, length;
    unsigned sum;
};

struct peer {
    VIP_VI_HANDLE vi;
    char *recv, *send;          /* slots */
    int next_round;             /* the round its next data message is of */
    int send_busy;
} peers[MAXRANKS];

int sizes[] = {0, 1, 61, 1024, 4093, 16000};
#define NSIZES 6

int rank = -1, size = 0, rounds = 12, wait_ms = 30000, level = 'd', job = 1;
char *device = DEFAULT_DEVICE;
char **hosts = 0;
int nhosts = 0;

char *region;
VIP_MEM_HANDLE region_handle;
VIP_CQ_HANDLE cq;
int got[4096];                  /* data messages of each round */
int barrier_got[2][16];
int sends_pending = 0;
int ending = 0;                 /* in the last barrier */
double bytes_in = 0;
int messages_in = 0;

VIP_DESCRIPTOR *desc_of(char *slot)
{
    return (VIP_DESCRIPTOR *)slot;
}

void post_receive(struct peer *p, char *slot)
{
    fill_descriptor(desc_of(slot), VIP_CONTROL_OP_SENDRECV, slot + 64,
                    SLOT - 64, region_handle, 0);
    must(VipPostRecv(p->vi, desc_of(slot), region_handle), "VipPostRecv");
}

/* which of the hosts a rank runs on; all on this one if none are given */
char *host_of(int r)
{
    return nhosts ? hosts[r % nhosts] : 0;
}

void make_peers(void)
{
    long bytes = (long)size * (NRECV + 1) * SLOT;
    char *s;
    int i, k;

    region = page_alloc(bytes);
    region_handle = register_memory(region, bytes, 0, 0);
    must(VipCreateCQ(nic, size * (NRECV + 1), &cq), "VipCreateCQ");
    s = region;
    for (i = 0; i < size; i++) {
        if (i == rank)
            continue;
        peers[i].vi = new_vi(level_of(level), nicattr.MaxTransferSize, 0, 0,
                             cq, cq);
        peers[i].send = s;
        peers[i].recv = s + SLOT;
        for (k = 0; k < NRECV; k++)
            post_receive(&peers[i], peers[i].recv + k * SLOT);
        s += (NRECV + 1) * SLOT;
    }
}

void connect_peers(void)
{
    VIP_NET_ADDRESS *local, *remote;
    VIP_VI_ATTRIBUTES va;
    int i, low, high;

    for (i = 0; i < size; i++) {
        if (i == rank)
            continue;
        low = i < rank ? i : rank;
        high = i < rank ? rank : i;
        /* both ends use the very same discriminator */
        local = local_address(A2A + job, low, high);
        remote = remote_address(host_of(i), A2A + job, low, high);
        must(VipConnectPeerRequest(peers[i].vi, local, remote, VIP_INFINITE),
             "VipConnectPeerRequest");
        free(local);
        free(remote);
    }
    for (i = 0; i < size; i++)
        if (i != rank)
            must(VipConnectPeerWait(peers[i].vi, &va), "VipConnectPeerWait");
}

void take_message(struct peer *p, VIP_DESCRIPTOR *d)
{
    struct header *h = (struct header *)((char *)d + 64);

    if (d->CS.Length != sizeof *h + h->length || h->to != rank ||
        p != &peers[h->from])
        die("a message went wrong on its way");
    if (checksum((char *)(h + 1), h->length, h->from) != h->sum)
        die("a message was damaged");
    if (h->kind == K_BARRIER)
        barrier_got[h->round][h->length]++;
    else if (h->kind == K_DATA && h->round == p->next_round) {
        got[p->next_round++]++;
        bytes_in += h->length;
        messages_in++;
    } else
        die("a message out of order");
    post_receive(p, (char *)d);
}

/* take one completion of either kind */
void progress(void)
{
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN isrecv;
    VIP_DESCRIPTOR *d;
    VIP_RETURN rc;
    struct peer *p;
    int tries;

    rc = VIP_NOT_DONE;
    for (tries = 0; tries < 100 && rc == VIP_NOT_DONE; tries++)
        rc = VipCQDone(cq, &vi, &isrecv);
    if (rc == VIP_NOT_DONE)
        rc = VipCQWait(cq, wait_ms, &vi, &isrecv);
    must(rc, "completion queue");
    for (p = peers; p->vi != vi; p++)
        ;
    do
        rc = isrecv ? VipRecvDone(p->vi, &d) : VipSendDone(p->vi, &d);
    while (rc == VIP_NOT_DONE);
    if (rc == VIP_DESCRIPTOR_ERROR && d != NULL && isrecv && ending &&
        (d->CS.Status & VIP_STATUS_DESC_FLUSHED_ERROR))
        return;                 /* that one is through the barrier and gone */
    if (rc == VIP_DESCRIPTOR_ERROR && d != NULL)
        fprintf(stderr, "%s: %s rank %d: status %08x\n", myname,
                isrecv ? "receive from" : "send to", (int)(p - peers),
                (unsigned)d->CS.Status);
    must(rc, isrecv ? "VipRecvDone" : "VipSendDone");
    if (isrecv)
        take_message(p, d);
    else {
        if (d != desc_of(p->send))
            die("another send than posted is done");
        p->send_busy = 0;
        sends_pending--;
    }
}

void send_to(int to, int kind, int round, int length)
{
    struct peer *p = &peers[to];
    struct header *h = (struct header *)(p->send + 64);

    while (p->send_busy)
        progress();
    h->kind = kind;
    h->from = rank;
    h->to = to;
    h->round = round;
    h->length = length;
    fill_pattern((char *)(h + 1), length, 0, rank * 5 + to + round);
    h->sum = checksum((char *)(h + 1), length, rank);
    fill_descriptor(desc_of(p->send), VIP_CONTROL_OP_SENDRECV, (char *)h,
                    sizeof *h + length, region_handle, 0);
    p->send_busy = 1;
    sends_pending++;
    must(VipPostSend(p->vi, desc_of(p->send), region_handle), "VipPostSend");
}

/* in step k I tell rank + 2^k and hear from rank - 2^k; k is the length */
void barrier(int which)
{
    int k, step;

    for (k = 0, step = 1; step < size; k++, step *= 2) {
        send_to((rank + step) % size, K_BARRIER, which, k);
        while (barrier_got[which][k] == 0)
            progress();
    }
    while (sends_pending)
        progress();
}

int main(int argc, char **argv)
{
    int c, i, round;

    myname = "via_alltoall";
    while ((c = getopt(argc, argv, "r:n:k:w:l:j:d:")) != -1)
        switch (c) {
        case 'r': rank = atoi(optarg); break;
        case 'n': size = atoi(optarg); break;
        case 'k': rounds = atoi(optarg); break;
        case 'w': wait_ms = atoi(optarg); break;
        case 'l': level = optarg[0]; break;
        case 'j': job = atoi(optarg); break;
        case 'd': device = optarg; break;
        default:
            fprintf(stderr, "usage: via_alltoall -r rank -n size [-k rounds] "
                            "[-w ms] [-l u|d|r] [-j job] [hosts ...]\n");
            return 2;
        }
    if (size < 2 || size > MAXRANKS || rank < 0 || rank >= size ||
        rounds < 1 || rounds > 4096)
        die("rank and size, please");
    hosts = argv + optind;
    nhosts = argc - optind;
    open_nic(device, NULL, fatal_callback);
    make_peers();
    connect_peers();
    barrier(0);
    for (round = 0; round < rounds; round++) {
        for (i = 1; i < size; i++)
            send_to((rank + i) % size, K_DATA, round,
                    sizes[(round + i + rank) % NSIZES]);
        while (got[round] < size - 1)
            progress();
    }
    ending = 1;
    barrier(1);
    printf("rank %d of %d: %d messages, %.0f bytes, all sums right\n", rank,
           size, messages_in, bytes_in);
    return 0;                   /* connected to everybody, callback and all */
}
