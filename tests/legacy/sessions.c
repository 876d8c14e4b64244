/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sessions.c -- a file server that uses few VIs again and again: clients come,
 * ask and go, in whatever way, and the VI waits for the next one.
 *
 *   via_sessions -s -n sessions [-v VIs] [-d device] [-r u|d|r]
 *   via_sessions -c hostname -n sessions -w d|k [-i number] [-m requests]
 *                [-d device] [-r u|d|r]
 *
 * A client connects one VI over and over.  With -w d it disconnects after its
 * last answer, with -w k each session is a process of its own that is killed
 * while a request is under way.  There are fewer VIs than clients: a request
 * for a connection may have to wait for one, with its handle in the listener's
 * hand, and its sender may be dead by then.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include "viautil.h"

#define PORT 7600
#define SLOTS 8                 /* receives of a VI; also what a client may ask at once */
#define SLOTSIZE 1024           /* descriptor, then data */
#define DATASIZE (SLOTSIZE - 64)
#define MAXVIS 16

struct message {
    int session, number, sum, words;
    int body[(DATASIZE - 16) / sizeof(int)];
};

struct end {
    VIP_VI_HANDLE vi;
    char *memory;               /* SLOTS receives, SLOTS sends */
    VIP_MEM_HANDLE handle;
    int busy, session, next, sending;
} ends[MAXVIS];

int nvis = 3, wanted = 100, over, requests;
int level = 'd';
VIP_CQ_HANDLE cq;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t freed = PTHREAD_COND_INITIALIZER;

/* clients die: that is no error */
void note_callback(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *e)
{
    if (e->ErrorCode != VIP_ERROR_CONN_LOST)
        fatal_callback(context, e);
}

VIP_DESCRIPTOR *slot(struct end *e, int i)
{
    return (VIP_DESCRIPTOR *)(e->memory + (long)i * SLOTSIZE);
}

struct message *data_of(VIP_DESCRIPTOR *d)
{
    return (struct message *)(d + 1);
}

void post_receive(struct end *e, VIP_DESCRIPTOR *d)
{
    fill_descriptor(d, VIP_CONTROL_OP_SENDRECV, (char *)(d + 1), DATASIZE,
                    e->handle, 0);
    must(VipPostRecv(e->vi, d, e->handle), "VipPostRecv");
}

void post_all(struct end *e)
{
    int i;

    for (i = 0; i < SLOTS; i++)
        post_receive(e, slot(e, i));
}

void new_end(struct end *e, VIP_CQ_HANDLE rcq)
{
    memset(e, 0, sizeof *e);
    e->memory = page_alloc(2L * SLOTS * SLOTSIZE);
    e->handle = register_memory(e->memory, 2L * SLOTS * SLOTSIZE, 0, 0);
    e->vi = new_vi(level_of(level), DATASIZE, 0, 0, (VIP_CQ_HANDLE)0, rcq);
}

/* back to Idle, and everything that was posted in our hands again */
void drain(struct end *e)
{
    VIP_DESCRIPTOR *d;
    int n = 0;

    must(VipDisconnect(e->vi), "VipDisconnect");
    for (;;) {
        VIP_RETURN rc = VipRecvDone(e->vi, &d);

        if (rc == VIP_NOT_DONE)
            die("a receive is pending on an Idle VI");
        if (d == 0)
            break;
        n++;
    }
    if (n > SLOTS)
        die("more receives came back than were posted");
    while (VipSendDone(e->vi, &d) == VIP_SUCCESS || d != 0)
        ;
}

int sum_of(struct message *m)
{
    unsigned s = 0;
    int i;

    for (i = 0; i < m->words; i++)
        s = s * 31 + (unsigned)m->body[i];
    return (int)s;
}

/* ---- server ---- */

void *listener(void *unused)
{
    VIP_NET_ADDRESS *local = local_address(PORT, 0, 0), *remote = new_address();
    VIP_VI_ATTRIBUTES va;
    VIP_CONN_HANDLE conn;
    struct end *e;
    VIP_RETURN rc;

    for (;;) {
        must(VipConnectWait(nic, local, VIP_INFINITE, remote, &va, &conn),
             "VipConnectWait");
        pthread_mutex_lock(&lock);
        for (;;) {
            for (e = ends; e < ends + nvis && e->busy; e++)
                ;
            if (e < ends + nvis)
                break;
            pthread_cond_wait(&freed, &lock);
        }
        e->busy = 1;
        e->session = get_discriminator(remote, 1);
        e->next = 0;
        rc = VipConnectAccept(conn, e->vi);
        if (rc == VIP_TIMEOUT) {        /* it is dead, or tired */
            e->busy = 0;
        } else
            must(rc, "VipConnectAccept");
        pthread_mutex_unlock(&lock);
    }
}

void answer(struct end *e, struct message *in)
{
    VIP_DESCRIPTOR *d = slot(e, SLOTS + e->sending++ % SLOTS), *done;
    struct message *out = data_of(d);

    if (in->session != e->session || in->number != e->next++)
        die("a request belongs to another session, or one is missing");
    if (in->sum != sum_of(in))
        die("a request has another sum");
    memcpy(out, in, DATASIZE);
    out->sum = ~in->sum;
    fill_descriptor(d, VIP_CONTROL_OP_SENDRECV, (char *)out,
                    (char *)(out->body + out->words) - (char *)out, e->handle, 0);
    must(VipPostSend(e->vi, d, e->handle), "VipPostSend");
    VipSendWait(e->vi, VIP_INFINITE, &done);
    requests++;
}

void serve(void)
{
    pthread_t thread;
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN recvqueue;
    VIP_DESCRIPTOR *d;
    VIP_RETURN rc;
    struct end *e;

    must(VipCreateCQ(nic, 4 * MAXVIS * SLOTS, &cq), "VipCreateCQ");
    for (e = ends; e < ends + nvis; e++) {
        new_end(e, cq);
        post_all(e);
    }
    if (pthread_create(&thread, 0, listener, 0) != 0)
        die("pthread_create");
    while (over < wanted) {
        must(VipCQWait(cq, VIP_INFINITE, &vi, &recvqueue), "VipCQWait");
        for (e = ends; e->vi != vi; e++)
            ;                   /* it is always one of ours */
        rc = VipRecvDone(vi, &d);
        if (d == 0)
            continue;           /* an entry that was left when its VI was drained */
        if (rc == VIP_SUCCESS) {
            pthread_mutex_lock(&lock);  /* Accept may be about to return */
            pthread_mutex_unlock(&lock);
            answer(e, data_of(d));
            post_receive(e, d);
        } else {
            if (!(d->CS.Status & VIP_STATUS_DESC_FLUSHED_ERROR))
                die("a receive failed");
            drain(e);
            post_all(e);
            pthread_mutex_lock(&lock);
            e->busy = 0;
            pthread_cond_signal(&freed);
            pthread_mutex_unlock(&lock);
            over++;
        }
    }
    printf("server: %d sessions, %d requests\n", over, requests);
    exit(0);
}

/* ---- client ---- */

void ask(struct end *e, int session, int number)
{
    VIP_DESCRIPTOR *d = slot(e, SLOTS + number % SLOTS);
    struct message *m = data_of(d);
    int i;

    m->session = session;
    m->number = number;
    m->words = (session * 7 + number * 13) % (int)(sizeof m->body / sizeof(int));
    for (i = 0; i < m->words; i++)
        m->body[i] = session + number * i;
    m->sum = sum_of(m);
    fill_descriptor(d, VIP_CONTROL_OP_SENDRECV, (char *)m,
                    (char *)(m->body + m->words) - (char *)m, e->handle, 0);
    must(VipPostSend(e->vi, d, e->handle), "VipPostSend");
}

void hear(struct end *e, int session, int number)
{
    VIP_DESCRIPTOR *d;
    struct message *m;

    must(VipSendWait(e->vi, VIP_INFINITE, &d), "VipSendWait");
    must(VipRecvWait(e->vi, VIP_INFINITE, &d), "VipRecvWait");
    m = data_of(d);
    if (m->session != session || m->number != number || ~m->sum != sum_of(m))
        die("an answer belongs to another request");
    post_receive(e, d);
}

void session(struct end *e, char *host, int number, int asked, int killed)
{
    VIP_NET_ADDRESS *local = local_address(PORT, number, 0);
    VIP_NET_ADDRESS *remote = remote_address(host, PORT, 0, 0);
    VIP_VI_ATTRIBUTES va;
    VIP_RETURN rc;
    int i;

    post_all(e);
    do
        rc = VipConnectRequest(e->vi, local, remote, 20000, &va);
    while (rc == VIP_NO_MATCH);
    must(rc, "VipConnectRequest");
    for (i = 0; i < asked; i++) {
        ask(e, number, i);
        if (killed && i == number % asked)
            kill(getpid(), SIGKILL);
        hear(e, number, i);
    }
    drain(e);
    free(local);
    free(remote);
}

int main(int argc, char **argv)
{
    char *host = 0, *device = DEFAULT_DEVICE;
    int c, i, server = 0, first = 0, asked = 5, way = 'd', status;
    struct end one;

    myname = "sessions";
    while ((c = getopt(argc, argv, "sc:n:v:w:i:m:d:r:")) != -1)
        switch (c) {
        case 's': server = 1; break;
        case 'c': host = optarg; break;
        case 'n': wanted = atoi(optarg); break;
        case 'v': nvis = atoi(optarg); break;
        case 'w': way = *optarg; break;
        case 'i': first = atoi(optarg) * 1000000; break;
        case 'm': asked = atoi(optarg); break;
        case 'd': device = optarg; break;
        case 'r': level = *optarg; break;
        default: die("usage: sessions -s | -c hostname, -n sessions");
        }
    if (nvis > MAXVIS)
        die("too many VIs");
    if (server) {
        open_nic(device, 0, note_callback);
        serve();
    }
    if (way == 'd') {
        open_nic(device, 0, note_callback);
        new_end(&one, (VIP_CQ_HANDLE)0);
        for (i = 0; i < wanted; i++)
            session(&one, host, first + i, asked, 0);
    } else
        for (i = 0; i < wanted; i++) {
            if (fork() == 0) {
                open_nic(device, 0, note_callback);
                new_end(&one, (VIP_CQ_HANDLE)0);
                session(&one, host, first + i, asked, 1);
                _exit(1);
            }
            wait(&status);
            if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
                die("a session ended by itself");
        }
    printf("client: %d sessions\n", wanted);
    return 0;
}
