/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * many2one.c -- a server with one completion queue and many clients.
 *
 *   via_many2one -s -n clients [-w ms] [-d device] [-p port]
 *   via_many2one -c host -i number [-m messages] [-b bytes] [-r u|d|r]
 *                [-d device] [-p port]
 *
 * A listener thread waits on one discriminator again and again and gives each
 * connection a VI; the main thread serves whatever the queue shows.  Clients
 * number their messages, the server checks number, size and sum of each and
 * answers with the sum.  Nothing is disconnected or freed at the end.
 */
#include "viautil.h"
#include <pthread.h>

#define PREPOST 16              /* receives the server has for each client */
#define WINDOW 8                /* messages a client has unanswered */
#define NREPLY 16
#define MAXCLIENTS 256
#define MAXBYTES 16384
#define M2O 0x4d324f31
#define BYE 0xFFFFFFFF         /* -1; messages are numbered from -2 down */

struct header {
    int client, seq, length;
    unsigned sum;
};

/* a slot: the descriptor, and right behind it its data */
struct slot {
    VIP_DESCRIPTOR desc;
    struct header h;
    char data[MAXBYTES];
    char pad[64 - sizeof(struct header)];
};

struct client {
    VIP_VI_HANDLE vi;
    struct slot *recv, *send;
    VIP_MEM_HANDLE handle;
    int number, next_seq, done, replies, reaped;
    double bytes;
} clients[MAXCLIENTS + 1];

int isserver = 0, nclients = 0, mynumber = 0, messages = 200, bytes = 1000;
int wait_ms = 0, level = 'd', port = 7;
char *host = 0, *device = DEFAULT_DEVICE;

VIP_CQ_HANDLE cq;
int accepted = 0;
pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;

void post_slot(VIP_VI_HANDLE vi, struct slot *s, VIP_MEM_HANDLE h)
{
    fill_descriptor(&s->desc, VIP_CONTROL_OP_SENDRECV, (char *)&s->h,
                    sizeof s->h + MAXBYTES, h, 0);
    must(VipPostRecv(vi, &s->desc, h), "VipPostRecv");
}

/* ---- server ---- */

/* another client's end is expected; before its farewell it is not */
void server_callback(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *e)
{
    int i, known = 0;

    pthread_mutex_lock(&table_lock);
    for (i = 0; i < accepted; i++)
        if (clients[i].vi == e->ViHandle && clients[i].done)
            known = 1;
    pthread_mutex_unlock(&table_lock);
    if (e->ErrorCode != VIP_ERROR_CONN_LOST || !known)
        fatal_callback(context, e);
}

void prepare_client(struct client *c, int k)
{
    long size = (PREPOST + NREPLY) * sizeof(struct slot);
    int i;

    memset(c, 0, sizeof *c);
    /* every receive of every client may complete at once, at the latest when
     * all of them have gone; the main thread may sit in VipCQWait meanwhile */
    if (k > 0)
        must(VipResizeCQ(cq, (k + 1) * PREPOST), "VipResizeCQ");
    c->recv = (struct slot *)page_alloc(size);
    c->send = c->recv + PREPOST;
    c->handle = register_memory((char *)c->recv, size, 0, 0);
    c->vi = new_vi(level_of(level), nicattr.MaxTransferSize, 0, 0, NULL, cq);
    for (i = 0; i < PREPOST; i++)
        post_slot(c->vi, &c->recv[i], c->handle);
}

void *listener(void *arg)
{
    VIP_NET_ADDRESS *local = local_address(M2O, port, 0);
    VIP_NET_ADDRESS *remote;
    VIP_VI_ATTRIBUTES va;
    VIP_CONN_HANDLE conn;
    struct client c;
    int k;

    for (k = 0; k <= nclients; k++) {
        prepare_client(&c, k);
        remote = new_address();
        must(VipConnectWait(nic, local, VIP_INFINITE, remote, &va, &conn),
             "VipConnectWait");
        /* who it is stands behind the host part of its address */
        c.number = get_discriminator(remote, 2);
        pthread_mutex_lock(&table_lock);
        clients[k] = c;
        accepted = k + 1;
        pthread_mutex_unlock(&table_lock);
        must(VipConnectAccept(conn, c.vi), "VipConnectAccept");
        free(remote);
    }
    die("one client too many");
    return 0;
}

void reply(struct client *c, struct header *h, int length, VIP_UINT32 imm)
{
    struct slot *s = &c->send[c->replies % NREPLY];
    VIP_DESCRIPTOR *d;
    VIP_RETURN rc;

    if (c->replies - c->reaped == NREPLY) {
        /* the send queue has no completion queue: it is asked itself */
        rc = VipSendWait(c->vi, VIP_INFINITE, &d);
        must(rc, "VipSendWait");
        if (d != &c->send[c->reaped % NREPLY].desc)
            die("replies complete in another order than posted");
        c->reaped++;
    }
    s->h = *h;
    fill_descriptor(&s->desc, VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE,
                    length ? (char *)&s->h : 0, length, c->handle, imm);
    must(VipPostSend(c->vi, &s->desc, c->handle), "VipPostSend");
    c->replies++;
}

/* one message; returns 1 for a farewell */
int serve_message(struct client *c, struct slot *s)
{
    struct header h = s->h;

    if (!(s->desc.CS.Status & VIP_STATUS_IMMEDIATE))
        die("a message without immediate data");
    if (s->desc.CS.ImmediateData == BYE) {
        if (s->desc.CS.Length != 0)
            die("a farewell has a length");
        memset(&h, 0, sizeof h);
        reply(c, &h, 0, BYE);
        return 1;
    }
    if (h.client != c->number || h.seq != c->next_seq ||
        (int)s->desc.CS.ImmediateData != -2 - h.seq ||
        s->desc.CS.Length != sizeof h + h.length) {
        fprintf(stderr, "%s: client %d: message %d of %d came as %d, length %d\n",
                myname, c->number, h.seq, h.client, c->next_seq, h.length);
        exit(1);
    }
    if (checksum(s->data, h.length, 0) != h.sum)
        die("a message was damaged");
    c->next_seq++;
    c->bytes += h.length;
    post_slot(c->vi, s, c->handle);     /* first room for more, then answer */
    reply(c, &h, sizeof h, h.seq);
    return 0;
}

VIP_RETURN next_event(VIP_VI_HANDLE *vi, VIP_BOOLEAN *isrecv)
{
    VIP_RETURN rc;

    do
        rc = VipCQWait(cq, wait_ms ? (VIP_ULONG)wait_ms : VIP_INFINITE, vi,
                       isrecv);
    while (rc == VIP_TIMEOUT && wait_ms);
    return rc;
}

void serve(void)
{
    pthread_t thread;
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN isrecv;
    VIP_DESCRIPTOR *d;
    VIP_RETURN rc;
    struct client *c;
    int i, finished = 0, total = 0;
    double all = 0;

    must(VipCreateCQ(nic, PREPOST, &cq), "VipCreateCQ");
    pthread_create(&thread, 0, listener, 0);
    while (finished < nclients) {
        must(next_event(&vi, &isrecv), "VipCQWait");
        if (!isrecv)
            die("the queue shows a send");
        pthread_mutex_lock(&table_lock);
        for (c = clients; c->vi != vi; c++)     /* it must be there */
            ;
        pthread_mutex_unlock(&table_lock);
        do
            rc = VipRecvDone(c->vi, &d);
        while (rc == VIP_NOT_DONE);
        if (rc == VIP_DESCRIPTOR_ERROR && d != NULL && c->done &&
            (d->CS.Status & VIP_STATUS_DESC_FLUSHED_ERROR))
            continue;           /* what it left behind */
        must(rc, "VipRecvDone");
        if (serve_message(c, (struct slot *)d)) {
            pthread_mutex_lock(&table_lock);
            c->done = 1;
            pthread_mutex_unlock(&table_lock);
            finished++;
        }
    }
    pthread_mutex_lock(&table_lock);
    for (i = 0; i < accepted; i++) {
        total += clients[i].next_seq;
        all += clients[i].bytes;
    }
    pthread_mutex_unlock(&table_lock);
    for (i = 0; i < nclients; i++)
        while (clients[i].reaped < clients[i].replies) {
            rc = VipSendDone(clients[i].vi, &d);
            if (rc == VIP_SUCCESS || rc == VIP_DESCRIPTOR_ERROR)
                clients[i].reaped++;
        }
    printf("%d clients, %d messages, %.0f bytes, all in order\n", nclients,
           total, all);
    /* the listener still waits for somebody; main just returns */
}

/* ---- client ---- */

void wait_reply(struct client *c, int seq)
{
    VIP_DESCRIPTOR *d;
    VIP_RETURN rc;
    struct slot *s;

    if (mynumber & 1)
        rc = VipRecvWait(c->vi, VIP_INFINITE, &d);
    else
        do
            rc = VipRecvDone(c->vi, &d);
        while (rc == VIP_NOT_DONE);
    must(rc, "receive of a reply");
    s = (struct slot *)d;
    if (seq < 0) {
        if (d->CS.Length != 0 || d->CS.ImmediateData != BYE)
            die("another answer to my farewell");
        return;
    }
    if (d->CS.Length != sizeof s->h || (int)d->CS.ImmediateData != seq ||
        s->h.seq != seq || s->h.client != mynumber ||
        s->h.sum != c->send[seq % WINDOW].h.sum)
        die("a reply does not fit its message");
    post_slot(c->vi, s, c->handle);
}

void send_slot(struct client *c, struct slot *s, int length, VIP_UINT32 imm)
{
    fill_descriptor(&s->desc, VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE,
                    length ? (char *)&s->h : 0, length, c->handle, imm);
    must(VipPostSend(c->vi, &s->desc, c->handle), "VipPostSend");
}

void reap(struct client *c, struct slot *s)
{
    VIP_DESCRIPTOR *d;
    VIP_RETURN rc;

    do
        rc = VipSendDone(c->vi, &d);
    while (rc == VIP_NOT_DONE);
    must(rc, "VipSendDone");
    if (d != &s->desc)
        die("sends complete in another order than posted");
}

void work(void)
{
    struct client *c = &clients[0];
    long size = (WINDOW + 2 + WINDOW) * sizeof(struct slot);
    struct slot *s;
    int i, answered = 0;

    c->recv = (struct slot *)page_alloc(size);
    c->send = c->recv + WINDOW + 2;
    c->handle = register_memory((char *)c->recv, size, 0, 0);
    c->vi = new_vi(level_of(level), nicattr.MaxTransferSize, 0, 0, NULL, NULL);
    for (i = 0; i < WINDOW + 2; i++)
        post_slot(c->vi, &c->recv[i], c->handle);
    request_connection(c->vi, local_address(M2O, port, mynumber),
                       remote_address(host, M2O, port, 0));
    for (i = 0; i < messages; i++) {
        if (i - answered == WINDOW)
            wait_reply(c, answered++);
        s = &c->send[i % WINDOW];
        s->h.client = mynumber;
        s->h.seq = i;
        s->h.length = (i * 37 + mynumber) % (bytes + 1);
        fill_pattern(s->data, s->h.length, 0, i + mynumber);
        s->h.sum = checksum(s->data, s->h.length, 0);
        send_slot(c, s, sizeof s->h + s->h.length, -2 - i);
        reap(c, s);
    }
    while (answered < messages)
        wait_reply(c, answered++);
    send_slot(c, &c->send[0], 0, BYE);
    reap(c, &c->send[0]);
    wait_reply(c, -1);
    printf("client %d: %d messages answered\n", mynumber, messages);
}

int main(int argc, char **argv)
{
    int c;

    myname = "via_many2one";
    while ((c = getopt(argc, argv, "sn:w:c:i:m:b:r:d:p:")) != -1)
        switch (c) {
        case 's': isserver = 1; break;
        case 'n': nclients = atoi(optarg); break;
        case 'w': wait_ms = atoi(optarg); break;
        case 'c': host = optarg; break;
        case 'i': mynumber = atoi(optarg); break;
        case 'm': messages = atoi(optarg); break;
        case 'b': bytes = atoi(optarg); break;
        case 'r': level = optarg[0]; break;
        case 'd': device = optarg; break;
        case 'p': port = atoi(optarg); break;
        default:
            fprintf(stderr, "usage: via_many2one -s -n clients [-w ms] | "
                            "-c host -i number [-m messages] [-b bytes]\n");
            return 2;
        }
    if (isserver == (host != 0) || (isserver && nclients < 1) ||
        nclients > MAXCLIENTS || bytes < 0 || bytes > MAXBYTES)
        die("say either -s -n clients or -c host -i number, with sane numbers");
    open_nic(device, NULL, isserver ? server_callback : fatal_callback);
    if (isserver)
        serve();
    else
        work();
    return 0;
}
