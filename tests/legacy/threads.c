/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * threads.c -- handlers and threads on both sides of three connections.
 *
 *   via_threads -s      [-m messages] [-r u|d|r] [-d device] [-p port]
 *   via_threads -c host [-m messages] [-r u|d|r] [-d device] [-p port]
 *
 * connection 1: the server answers from VipRecvNotify handlers
 * connection 2: the server answers from VipCQNotify handlers
 * connection 3: both sides send with one thread and receive with another
 *
 * A handler is called once and asks for itself again.  The client ends when it
 * has all its answers; the server learns that from its error callback and
 * leaves from in there.
 */
#include "viautil.h"
#include <pthread.h>

#define WINDOW 8
#define MAXMESSAGES 500
#define BYTES 960
#define THRD 0x54485244

#define NOTIFY 1
#define QUEUE 2
#define DUPLEX 3

struct slot {
    VIP_DESCRIPTOR desc;
    int seq, length;
    char data[BYTES - 8];
};

struct conn {
    int kind, nrecv;
    VIP_VI_HANDLE vi;
    VIP_CQ_HANDLE cq;
    VIP_MEM_HANDLE h;
    struct slot *recv, *send;   /* nrecv and WINDOW of them */
    int posted, reaped;         /* sends */
    int got;                    /* messages received, next sequence number */
    int timeouts;
} conns[4];

int isserver = 0, messages = 200, level = 'd', port = 7;
char *host = 0, *device = DEFAULT_DEVICE;

/* what the error callback looks at */
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int finished[4], leaving = 0;

void finish(int kind)
{
    pthread_mutex_lock(&lock);
    finished[kind]++;
    pthread_mutex_unlock(&lock);
}

/* connection lost means the other side has got all it wanted */
void peer_is_done(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *e)
{
    int all;

    pthread_mutex_lock(&lock);
    all = finished[NOTIFY] == 1 && finished[QUEUE] == 1 && finished[DUPLEX] == 2;
    pthread_mutex_unlock(&lock);
    if (e->ErrorCode != VIP_ERROR_CONN_LOST || !all)
        fatal_callback(context, e);
    if (!leaving++) {
        printf("server: all answered, the client has left\n");
        exit(0);
    }
}

void post_recv(struct conn *c, struct slot *s)
{
    fill_descriptor(&s->desc, VIP_CONTROL_OP_SENDRECV, (char *)&s->seq, BYTES,
                    c->h, 0);
    must(VipPostRecv(c->vi, &s->desc, c->h), "VipPostRecv");
}

void make_conn(struct conn *c, int kind)
{
    long size;
    int i;

    c->kind = kind;
    c->nrecv = kind == DUPLEX ? messages : WINDOW + 1;
    size = (c->nrecv + WINDOW) * sizeof(struct slot);
    c->recv = (struct slot *)page_alloc(size);
    c->send = c->recv + c->nrecv;
    c->h = register_memory((char *)c->recv, size, 0, 0);
    c->cq = NULL;
    if (isserver && kind == QUEUE)
        must(VipCreateCQ(nic, c->nrecv, &c->cq), "VipCreateCQ");
    c->vi = new_vi(level_of(level), nicattr.MaxTransferSize, 0, 0, NULL, c->cq);
    for (i = 0; i < c->nrecv; i++)
        post_recv(c, &c->recv[i]);
}

void check_slot(struct conn *c, VIP_DESCRIPTOR *d, int sender)
{
    struct slot *s = (struct slot *)d;

    if (d->CS.Length != s->length + 2 * sizeof(int) || s->seq != c->got ||
        d->CS.ImmediateData != (VIP_UINT32)s->seq)
        die("a message out of order");
    if (wrong_byte(s->data, s->length, 0, s->seq + c->kind + sender) >= 0)
        die("a message was damaged");
}

struct slot *prepare_slot(struct conn *c, int seq)
{
    struct slot *s = &c->send[seq % WINDOW];

    s->seq = seq;
    s->length = (seq * 29 + c->kind) % (BYTES - 8);
    fill_pattern(s->data, s->length, 0, seq + c->kind + isserver);
    fill_descriptor(&s->desc, VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE,
                    (char *)&s->seq, s->length + 2 * sizeof(int), c->h, seq);
    return s;
}

void check_send(struct conn *c, VIP_DESCRIPTOR *d)
{
    if (d != &c->send[c->reaped % WINDOW].desc)
        die("sends complete in another order than posted");
    c->reaped++;
}

void send_polling(struct conn *c, int seq)
{
    VIP_DESCRIPTOR *d;
    VIP_RETURN rc;

    must(VipPostSend(c->vi, &prepare_slot(c, seq)->desc, c->h), "VipPostSend");
    c->posted++;
    do
        rc = VipSendDone(c->vi, &d);
    while (rc == VIP_NOT_DONE);
    must(rc, "VipSendDone");
    check_send(c, d);
}

/* ---- server: handlers ---- */

/* answer one message from within a handler */
int answer(struct conn *c, VIP_DESCRIPTOR *d)
{
    if (d->CS.Status & VIP_STATUS_DESC_FLUSHED_ERROR)
        return 0;               /* the end; the error callback will say so */
    if (d->CS.Status & VIP_STATUS_ERROR_MASK)
        die("a receive failed");
    check_slot(c, d, 0);
    post_recv(c, (struct slot *)d);
    send_polling(c, c->got);
    c->got++;
    if (c->got == messages)
        finish(c->kind);
    return 1;
}

void recv_handler(VIP_PVOID context, VIP_NIC_HANDLE n, VIP_VI_HANDLE vi,
                  VIP_DESCRIPTOR *d)
{
    struct conn *c = (struct conn *)context;

    if (n != nic || vi != c->vi || d == NULL)
        die("a handler was called for somebody else");
    if (answer(c, d))
        must(VipRecvNotify(vi, context, recv_handler), "VipRecvNotify");
}

void queue_handler(VIP_PVOID context, VIP_NIC_HANDLE n, VIP_VI_HANDLE vi,
                   VIP_BOOLEAN isrecv)
{
    struct conn *c = (struct conn *)context;
    VIP_DESCRIPTOR *d;
    VIP_RETURN rc;

    if (n != nic || vi != c->vi || !isrecv)
        die("a queue handler was called for somebody else");
    do
        rc = VipRecvDone(vi, &d);
    while (rc == VIP_NOT_DONE);
    if (d == NULL)
        die("a queue entry without a descriptor");
    if (answer(c, d))
        must(VipCQNotify(c->cq, context, queue_handler), "VipCQNotify");
}

/* ---- both: the two threads of connection 3 ---- */

void *duplex_sender(void *arg)
{
    struct conn *c = (struct conn *)arg;
    int i;

    for (i = 0; i < messages; i++)
        send_polling(c, i);
    finish(DUPLEX);
    return 0;
}

void *duplex_receiver(void *arg)
{
    struct conn *c = (struct conn *)arg;
    VIP_DESCRIPTOR *d;
    VIP_RETURN rc;

    while (c->got < messages) {
        rc = VipRecvWait(c->vi, 50, &d);
        if (rc == VIP_TIMEOUT) {
            c->timeouts++;
            continue;
        }
        must(rc, "VipRecvWait");
        check_slot(c, d, !isserver);
        c->got++;
    }
    finish(DUPLEX);
    return 0;
}

/* ---- server ---- */

void start_thread(pthread_t *t, void *(*f)(void *), void *arg)
{
    if (pthread_create(t, 0, f, arg) != 0)
        die("pthread_create");
}

void *listener(void *arg)
{
    VIP_NET_ADDRESS *local = local_address(THRD, port, 0);
    VIP_NET_ADDRESS *remote = new_address();
    VIP_VI_ATTRIBUTES va;
    VIP_CONN_HANDLE handle;
    struct conn *c;
    pthread_t t;
    int i, kind;

    for (i = 0; i < 3; i++) {
        must(VipConnectWait(nic, local, VIP_INFINITE, remote, &va, &handle),
             "VipConnectWait");
        kind = get_discriminator(remote, 2);
        if (kind < NOTIFY || kind > DUPLEX)
            die("a connection of no known kind");
        c = &conns[kind];
        make_conn(c, kind);
        if (kind == NOTIFY)
            must(VipRecvNotify(c->vi, c, recv_handler), "VipRecvNotify");
        if (kind == QUEUE)
            must(VipCQNotify(c->cq, c, queue_handler), "VipCQNotify");
        must(VipConnectAccept(handle, c->vi), "VipConnectAccept");
        if (kind == DUPLEX) {
            start_thread(&t, duplex_sender, c);
            start_thread(&t, duplex_receiver, c);
        }
    }
    return 0;
}

void serve(void)
{
    pthread_t t;

    start_thread(&t, listener, 0);
    pthread_join(t, 0);
    for (;;)
        pause();                /* the callback ends this process */
}

/* ---- client ---- */

/* keeps WINDOW messages under way; waits by timeouts on both queues */
void *asker(void *arg)
{
    struct conn *c = (struct conn *)arg;
    VIP_DESCRIPTOR *d;
    VIP_RETURN rc;
    double t = seconds();
    int sent = 0;

    /* nothing was asked, so nothing may come, and not too early either */
    d = NULL;
    rc = VipRecvWait(c->vi, 100, &d);
    t = seconds() - t;
    if (rc != VIP_TIMEOUT || d != NULL || t < 0.095)
        die("a wait of 100 ms went wrong");
    while (c->got < messages) {
        while (sent < messages && sent - c->got < WINDOW) {
            must(VipPostSend(c->vi, &prepare_slot(c, sent++)->desc, c->h),
                 "VipPostSend");
            do
                rc = VipSendWait(c->vi, 20, &d);
            while (rc == VIP_TIMEOUT);
            must(rc, "VipSendWait");
            check_send(c, d);
        }
        rc = VipRecvWait(c->vi, 20, &d);
        if (rc == VIP_TIMEOUT)
            continue;
        must(rc, "VipRecvWait");
        check_slot(c, d, 1);
        post_recv(c, (struct slot *)d);
        c->got++;
    }
    finish(c->kind);
    return 0;
}

void ask(void)
{
    pthread_t t[4];
    int kind;

    for (kind = NOTIFY; kind <= DUPLEX; kind++) {
        make_conn(&conns[kind], kind);
        request_connection(conns[kind].vi, local_address(THRD, port, kind),
                           remote_address(host, THRD, port, 0));
        if (kind == DUPLEX) {
            start_thread(&t[0], duplex_sender, &conns[kind]);
            start_thread(&t[kind], duplex_receiver, &conns[kind]);
        } else
            start_thread(&t[kind], asker, &conns[kind]);
    }
    for (kind = 0; kind < 4; kind++)
        pthread_join(t[kind], 0);
    printf("client: %d answers from handlers, %d from queue handlers, %d "
           "messages each way\n",
           conns[NOTIFY].got, conns[QUEUE].got, conns[DUPLEX].got);
}

int main(int argc, char **argv)
{
    int c;

    myname = "via_threads";
    while ((c = getopt(argc, argv, "sc:m:r:d:p:")) != -1)
        switch (c) {
        case 's': isserver = 1; break;
        case 'c': host = optarg; break;
        case 'm': messages = atoi(optarg); break;
        case 'r': level = optarg[0]; break;
        case 'd': device = optarg; break;
        case 'p': port = atoi(optarg); break;
        default:
            fprintf(stderr, "usage: via_threads -s | -c host [-m messages] "
                            "[-r u|d|r] [-d device] [-p port]\n");
            return 2;
        }
    if (isserver == (host != 0) || messages < 1 || messages > MAXMESSAGES)
        die("say either -s or -c host, and up to 500 messages");
    open_nic(device, NULL, isserver ? peer_is_done : fatal_callback);
    if (isserver)
        serve();
    else
        ask();
    return 0;
}
