/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pingpong.c -- latency and bandwidth between two processes over one VI.
 *
 *   via_pingpong -s          [-m max bytes] [-d device] [-p port]
 *   via_pingpong -c host     [-n iterations] [-m max bytes] [-t piece]
 *                            [-r u|d|r] [-d device] [-p port]
 *
 * VIA has no flow control, so 32 receives are posted before the connection is
 * made and each message tells, in its immediate data, how many of them were
 * posted again.  A message larger than the VI's transfer size goes in pieces.
 */
#include "viautil.h"

#define CREDITS 32
#define NSEND 32
#define CREDIT_ONLY 0x10000     /* immediate data: no message, only credits */
#define PING 0x50494e47

int isserver = 0;
int iterations = 1000;
int maxbytes = 1024 * 1024;
int piece = 0;
int level = 0;
int port = 7;
char *host = 0;
char *device = DEFAULT_DEVICE;

VIP_VI_HANDLE vi;
char *region;                   /* descriptors, receive buffers, send buffer */
VIP_MEM_HANDLE region_handle;
VIP_DESCRIPTOR *send_desc, *recv_desc;
char *send_buf, *recv_buf;
int nbuf;                       /* receive buffers, a power of two */

int send_head, send_tail;       /* sends posted, sends completed */
int recv_head;                  /* receives taken */
int credits = CREDITS;          /* receives the other side has for us */
int owed;                       /* receives posted again, not told yet */

void post_receive(int i)
{
    VIP_DESCRIPTOR *d = &recv_desc[i % CREDITS];

    fill_descriptor(d, VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE,
                    recv_buf + (long)(i % nbuf) * piece, piece, region_handle, 0);
    must(VipPostRecv(vi, d, region_handle), "VipPostRecv");
}

void make_buffers(void)
{
    long bytes;
    int i;

    if (piece > maxbytes + 3)
        piece = maxbytes + 3;
    for (nbuf = 1; nbuf < CREDITS && (long)nbuf * piece < maxbytes + 3;)
        nbuf *= 2;
    bytes = (CREDITS + NSEND) * sizeof(VIP_DESCRIPTOR) + (long)nbuf * piece +
            maxbytes + 3;
    region = page_alloc(bytes);
    region_handle = register_memory(region, bytes, 0, 0);
    send_desc = (VIP_DESCRIPTOR *)region;
    recv_desc = send_desc + NSEND;
    recv_buf = (char *)(recv_desc + CREDITS);
    send_buf = recv_buf + (long)nbuf * piece;
    for (i = 0; i < CREDITS; i++)
        post_receive(i);
}

void reap_send(void)
{
    VIP_DESCRIPTOR *d;
    VIP_RETURN rc;

    do
        rc = VipSendDone(vi, &d);
    while (rc == VIP_NOT_DONE);
    must(rc, "VipSendDone");
    if (d != &send_desc[send_tail % NSEND])
        die("sends complete in another order than posted");
    send_tail++;
}

void reap_all_sends(void)
{
    while (send_tail < send_head)
        reap_send();
}

void post_piece(char *data, int length, int flags)
{
    VIP_DESCRIPTOR *d;

    if (send_head - send_tail == NSEND)
        reap_send();
    d = &send_desc[send_head % NSEND];
    fill_descriptor(d, VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE, data,
                    length, region_handle, owed | flags);
    owed = 0;
    credits--;
    must(VipPostSend(vi, d, region_handle), "VipPostSend");
    send_head++;
}

/* post again the receive that was taken last */
void release_piece(void)
{
    post_receive(recv_head - 1);
    owed++;
    if (owed >= CREDITS / 2)
        post_piece(0, 0, CREDIT_ONLY);
}

/* the next arrival; returns its length, or -1 if it only brought credits */
int take_piece(char **data)
{
    VIP_DESCRIPTOR *d;
    VIP_RETURN rc;

    do
        rc = VipRecvDone(vi, &d);
    while (rc == VIP_NOT_DONE);
    must(rc, "VipRecvDone");
    if (d != &recv_desc[recv_head % CREDITS])
        die("receives complete in another order than posted");
    if ((d->CS.Status & VIP_STATUS_OP_MASK) != VIP_STATUS_OP_RECEIVE ||
        !(d->CS.Status & VIP_STATUS_IMMEDIATE))
        die("receive status is wrong");
    recv_head++;
    credits += d->CS.ImmediateData & 0xffff;
    *data = (char *)d->DS[0].Local.Data.Address;
    if (d->CS.ImmediateData & CREDIT_ONLY) {
        if (d->CS.Length != 0)
            die("a credit message has a length");
        release_piece();
        return -1;
    }
    return d->CS.Length;
}

void send_message(int bytes)
{
    int sent, n;
    char *unused;

    for (sent = 0; sent < bytes; sent += n) {
        n = bytes - sent < piece ? bytes - sent : piece;
        while (credits < 2)     /* the last one is for credits alone */
            if (take_piece(&unused) >= 0)
                die("a message while we were sending");
        post_piece(send_buf + sent, n, 0);
    }
}

void recv_message(int bytes, int verify, int seed)
{
    int got, n, bad;
    char *data;

    for (got = 0; got < bytes;) {
        n = take_piece(&data);
        if (n < 0)
            continue;
        if (n != (bytes - got < piece ? bytes - got : piece))
            die("a piece has the wrong length");
        if (verify && (bad = wrong_byte(data, n, got, seed)) >= 0) {
            fprintf(stderr, "%s: byte %d of %d is wrong\n", myname, bad, bytes);
            exit(1);
        }
        got += n;
        release_piece();
    }
}

void verify_size(int bytes)
{
    int round;

    for (round = 0; round < 2; round++) {
        reap_all_sends();       /* nothing of ours in the send buffer */
        fill_pattern(send_buf, bytes, 0, bytes + 2 * round + isserver);
        if (isserver) {
            recv_message(bytes, 1, bytes + 2 * round);
            send_message(bytes);
        } else {
            send_message(bytes);
            recv_message(bytes, 1, bytes + 2 * round + 1);
        }
    }
}

double time_size(int bytes, int n)
{
    int i;
    double t = seconds();

    for (i = 0; i < n; i++)
        if (isserver) {
            recv_message(bytes, 0, 0);
            send_message(bytes);
        } else {
            send_message(bytes);
            recv_message(bytes, 0, 0);
        }
    return (seconds() - t) / (2.0 * n);
}

void run_sizes(void)
{
    int bytes, n;
    double half;

    for (bytes = 4; bytes <= maxbytes; bytes *= 2) {
        verify_size(bytes - 3);
        verify_size(bytes);
        verify_size(bytes + 3);
        n = iterations;
        if (bytes > 16384)
            n = (int)((double)iterations * 16384 / bytes);
        if (n < iterations / 20)
            n = iterations / 20;
        if (n < 2)
            n = 2;
        half = time_size(bytes, n);
        if (!isserver)
            printf("%10d %16.2f %12.1f\n", bytes, half * 1e6,
                   bytes / half / 1e6);
        fflush(stdout);
    }
}

void serve(void)
{
    VIP_NET_ADDRESS *local, *remote;
    VIP_VI_ATTRIBUTES va;
    VIP_CONN_HANDLE conn;
    int params[2];

    vi = new_vi(level_of(level), nicattr.MaxTransferSize, 0, 0, NULL, NULL);
    local = local_address(PING, port, 0);
    remote = new_address();
    must(VipConnectWait(nic, local, VIP_INFINITE, remote, &va, &conn),
         "VipConnectWait");
    /* the client chooses level and transfer size, we follow */
    piece = va.MaxTransferSize;
    level = va.ReliabilityLevel;
    va.Ptag = ptag;
    va.EnableRdmaWrite = 0;
    va.EnableRdmaRead = 0;
    must(VipSetViAttributes(vi, &va), "VipSetViAttributes");
    make_buffers();
    must(VipConnectAccept(conn, vi), "VipConnectAccept");
    recv_message(sizeof params, 0, 0);
    memcpy(params, recv_buf, sizeof params);
    if (params[1] > maxbytes)
        die("the client wants larger messages than this server (-m)");
    iterations = params[0];
    maxbytes = params[1];
    memcpy(send_buf, params, sizeof params);
    send_message(sizeof params);
    run_sizes();
    recv_message(4, 1, 99);
    printf("server: done\n");
}

void measure(void)
{
    VIP_NET_ADDRESS *local, *remote;
    int params[2];

    if (piece <= 0 || piece > (int)nicattr.MaxTransferSize)
        piece = nicattr.MaxTransferSize;
    vi = new_vi(level_of(level), piece, 0, 0, NULL, NULL);
    make_buffers();
    local = local_address(PING, port, (int)getpid());
    remote = remote_address(host, PING, port, 0);
    request_connection(vi, local, remote);
    params[0] = iterations;
    params[1] = maxbytes;
    memcpy(send_buf, params, sizeof params);
    send_message(sizeof params);
    recv_message(sizeof params, 0, 0);
    printf("%10s %16s %12s\n", "bytes", "half trip (us)", "MB/s");
    run_sizes();
    reap_all_sends();
    fill_pattern(send_buf, 4, 0, 99);
    send_message(4);
    reap_all_sends();
    printf("data verified: OK\n");
}

int main(int argc, char **argv)
{
    int c;

    myname = "via_pingpong";
    while ((c = getopt(argc, argv, "sc:n:m:t:r:d:p:")) != -1)
        switch (c) {
        case 's': isserver = 1; break;
        case 'c': host = optarg; break;
        case 'n': iterations = atoi(optarg); break;
        case 'm': maxbytes = atoi(optarg); break;
        case 't': piece = atoi(optarg); break;
        case 'r': level = optarg[0]; break;
        case 'd': device = optarg; break;
        case 'p': port = atoi(optarg); break;
        default:
            fprintf(stderr, "usage: via_pingpong -s | -c host [-n iterations] "
                            "[-m max bytes] [-t piece] [-r u|d|r] [-d device] "
                            "[-p port]\n");
            return 2;
        }
    if (isserver == (host != 0) || iterations < 1 || maxbytes < 8 ||
        maxbytes > 1 << 30)
        die("say either -s or -c host, with sane numbers");
    open_nic(device, NULL, fatal_callback);
    if (isserver)
        serve();
    else
        measure();
    return 0;                   /* the end of the process cleans up */
}
