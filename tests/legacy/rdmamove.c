/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdmamove.c -- moves a file into another process by RDMA.
 *
 *   via_rdmamove -s [-o output file] [-d device] [-p port]
 *   via_rdmamove -c host [-f file | -z bytes] [-M mode] [-r d|r] [-d device]
 *                [-p port]
 *
 * mode 1  pieces by RDMA write; the last piece of a chunk has immediate data
 * mode 2  no immediate data: the target spins on the last int of the chunk in
 *         its memory, the source on a count the target writes into its own
 * mode 3  as mode 1, then the file is read back by RDMA read
 */
#include "viautil.h"

#define NBUF 4                  /* chunks under way */
#define CHUNK 65467             /* odd, so the flag behind it never is aligned */
#define PIECE 16384
#define NRECV 32
#define NSEND 32
#define NOTE 64                 /* bytes of a receive buffer */
#define FINISH 0x7fffffff
#define MOVE 0x4d4f5645

/* what travels is the same for a machine with longer pointers */
struct hello {
    VIP_UINT64 size;
    VIP_UINT64 ack_address;
    int mode;
    VIP_MEM_HANDLE ack_handle;
};

struct window {
    VIP_UINT64 address;
    VIP_MEM_HANDLE handle;
    int nbuf;
};

struct finish {
    VIP_UINT64 store;
    VIP_MEM_HANDLE handle;
    unsigned sum;
};

struct chunk {
    int number, length;
    unsigned sum;
    int unused;
    char data[CHUNK + 4];       /* the flag comes right behind the data */
    char pad[64 - (CHUNK + 4) % 64];
};

/* everything the NIC touches: descriptors, notes, chunks, the count */
struct region {
    VIP_DESCRIPTOR send[NSEND];
    VIP_DESCRIPTOR recv[NRECV];
    char note[NRECV][NOTE];
    char out[NSEND][NOTE];
    struct chunk chunk[NBUF];
    int ack;
} *r;

int isserver = 0, mode = 1, level = 'd', port = 7;
long file_size = 8 * 1024 * 1024 + 4321;
char *host = 0, *device = DEFAULT_DEVICE, *in_name = 0, *out_name = 0;

VIP_VI_HANDLE vi;
VIP_MEM_HANDLE h, window_handle;
char *file;                     /* the whole of it, in memory */
int can_read, send_head = 0, send_tail = 0, recv_head = 0;

int chunk_length(int k)
{
    long left = file_size - (long)k * CHUNK;

    return left < CHUNK ? (int)left : CHUNK;
}

int chunk_count(void)
{
    return (int)((file_size + CHUNK - 1) / CHUNK);
}

void post_note(int i)
{
    memset(r->note[i], 0xA5, NOTE);
    fill_descriptor(&r->recv[i], VIP_CONTROL_OP_SENDRECV, r->note[i], NOTE, h, 0);
    must(VipPostRecv(vi, &r->recv[i], h), "VipPostRecv");
}

void make_region(void)
{
    int i;

    r = (struct region *)page_alloc(sizeof *r);
    /* twice: as a whole for ourselves, the window for the other side's writes */
    h = register_memory((char *)r, sizeof *r, 0, 0);
    window_handle = register_memory((char *)r->chunk, sizeof r->chunk +
                                    sizeof r->ack, 1, 0);
    can_read = (nicattr.RDMAReadSupport & level_of(level)) != 0;
    vi = new_vi(level_of(level), nicattr.MaxTransferSize, 1, can_read, NULL,
                NULL);
    for (i = 0; i < NRECV; i++)
        post_note(i);
}

void reap(void)
{
    VIP_DESCRIPTOR *d;
    VIP_RETURN rc;

    do
        rc = VipSendDone(vi, &d);
    while (rc == VIP_NOT_DONE);
    must(rc, "VipSendDone");
    if (d != &r->send[send_tail % NSEND])
        die("sends complete in another order than posted");
    send_tail++;
}

void reap_all(void)
{
    while (send_tail < send_head)
        reap();
}

VIP_DESCRIPTOR *free_send(void)
{
    if (send_head - send_tail == NSEND)
        reap();
    return &r->send[send_head % NSEND];
}

void post_send(VIP_DESCRIPTOR *d)
{
    must(VipPostSend(vi, d, h), "VipPostSend");
    send_head++;
}

/* a short message by copy */
void send_note(void *note, int length, int immediate)
{
    VIP_DESCRIPTOR *d = free_send();
    char *out = r->out[send_head % NSEND];

    if (length)
        memcpy(out, note, length);
    fill_descriptor(d, VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE,
                    length ? out : 0, length, h, immediate);
    post_send(d);
}

/* one address segment, one data segment */
void rdma(int control, void *here, VIP_MEM_HANDLE here_handle, int length,
          VIP_UINT64 there, VIP_MEM_HANDLE there_handle, int immediate)
{
    VIP_DESCRIPTOR *d = free_send();

    d->CS.Control = control;
    d->CS.SegCount = 2;
    d->CS.Reserved = 0;
    d->CS.ImmediateData = immediate;
    d->CS.Length = length;
    d->CS.Status = 0;
    d->DS[0].Remote.Data.AddressBits = there;
    d->DS[0].Remote.Handle = there_handle;
    d->DS[0].Remote.Reserved = 0;
    d->DS[1].Local.Data.Address = here;
    d->DS[1].Local.Handle = here_handle;
    d->DS[1].Local.Length = length;
    post_send(d);
}

/* the next arrival, in posting order; its note stays until it is posted again */
VIP_DESCRIPTOR *next_note(int spin)
{
    VIP_DESCRIPTOR *d;
    VIP_RETURN rc;

    if (spin)
        do
            rc = VipRecvDone(vi, &d);
        while (rc == VIP_NOT_DONE);
    else
        rc = VipRecvWait(vi, VIP_INFINITE, &d);
    must(rc, "receive");
    if (d != &r->recv[recv_head % NRECV])
        die("receives complete in another order than posted");
    recv_head++;
    return d;
}

void take_note(void *note, int length)
{
    VIP_DESCRIPTOR *d = next_note(0);

    if ((int)d->CS.Length != length ||
        (d->CS.Status & VIP_STATUS_OP_MASK) != VIP_STATUS_OP_RECEIVE)
        die("a note is not what was expected");
    memcpy(note, d->DS[0].Local.Data.Address, length);
    post_note((recv_head - 1) % NRECV);
}

/* ---- the receiving side ---- */

void keep_chunk(struct chunk *c, int k)
{
    if (c->number != k || c->length != chunk_length(k) ||
        checksum(c->data, c->length, k) != c->sum) {
        fprintf(stderr, "%s: chunk %d is damaged (says %d, %d bytes)\n", myname,
                k, c->number, c->length);
        exit(1);
    }
    memcpy(file + (long)k * CHUNK, c->data, c->length);
    c->number = -1;
}

void receive_with_immediate(void)
{
    VIP_DESCRIPTOR *d;
    char *note;
    int k, i;

    for (k = 0; k < chunk_count(); k++) {
        d = next_note(1);
        if ((d->CS.Status & VIP_STATUS_OP_MASK) !=
                VIP_STATUS_OP_REMOTE_RDMA_WRITE ||
            !(d->CS.Status & VIP_STATUS_IMMEDIATE) ||
            (int)d->CS.ImmediateData != k)
            die("the immediate data of a chunk is wrong");
        note = (char *)d->DS[0].Local.Data.Address;
        for (i = 0; i < NOTE; i++)
            if (note[i] != (char)0xA5)
                die("an RDMA write touched the receive's own buffer");
        post_note((recv_head - 1) % NRECV);
        keep_chunk(&r->chunk[k % NBUF], k);
        if (k % 8 == 7) {       /* an ordinary message comes in between */
            d = next_note(1);
            if (d->CS.Length != sizeof k ||
                memcmp(d->DS[0].Local.Data.Address, &k, sizeof k) != 0)
                die("the message behind a chunk is wrong");
            post_note((recv_head - 1) % NRECV);
        }
        send_note(0, 0, k);
    }
}

/* nothing of the library is called here to see data arrive */
void receive_by_flag(struct hello *hello)
{
    struct chunk *c;
    volatile int *flag;
    int k;

    for (k = 0; k < chunk_count(); k++) {
        c = &r->chunk[k % NBUF];
        flag = (volatile int *)(c->data + chunk_length(k));
        while (*flag != 1)
            ;
        keep_chunk(c, k);
        *flag = 0;
        /* where the flag of the next chunk in this buffer will be */
        if (k + NBUF < chunk_count())
            memset(c->data + chunk_length(k + NBUF), 0, sizeof(int));
        reap_all();
        r->ack = k + 1;
        rdma(VIP_CONTROL_OP_RDMAWRITE, &r->ack, h, sizeof(int),
             hello->ack_address, hello->ack_handle, 0);
    }
    reap_all();
}

void serve(void)
{
    VIP_NET_ADDRESS *remote = new_address();
    VIP_VI_ATTRIBUTES va;
    VIP_CONN_HANDLE conn;
    struct hello hello;
    struct window window;
    struct finish finish;
    FILE *f;

    must(VipConnectWait(nic, local_address(MOVE, port, 0), VIP_INFINITE, remote,
                        &va, &conn), "VipConnectWait");
    level = va.ReliabilityLevel == VIP_SERVICE_RELIABLE_RECEPTION ? 'r' : 'd';
    make_region();
    must(VipConnectAccept(conn, vi), "VipConnectAccept");
    take_note(&hello, sizeof hello);
    file_size = (long)hello.size;
    file = page_alloc(file_size);
    window.address = (unsigned long)r->chunk;
    window.handle = window_handle;
    window.nbuf = NBUF;
    send_note(&window, sizeof window, 0);
    if (hello.mode == 2)
        receive_by_flag(&hello);
    else
        receive_with_immediate();
    take_note(&finish, sizeof finish);
    if (checksum(file, file_size, 0) != finish.sum)
        die("the sum of the file is wrong");
    finish.store = (unsigned long)file;
    finish.handle = register_memory(file, file_size, 0, can_read);
    send_note(&finish, sizeof finish, FINISH);
    take_note(&finish, sizeof finish);      /* the other side has read enough */
    if (out_name) {
        f = fopen(out_name, "wb");
        if (f == 0 || (long)fwrite(file, 1, file_size, f) != file_size ||
            fclose(f) != 0)
            die("cannot write the output file");
    }
    printf("received %ld bytes, sum %08x\n", file_size, finish.sum);
}

/* ---- the sending side ---- */

void load_file(void)
{
    FILE *f;
    long i;
    unsigned x = 12345;

    if (in_name == 0) {
        file = page_alloc(file_size);
        for (i = 0; i < file_size; i++) {
            x = x * 1103515245 + 12345;
            file[i] = (char)(x >> 16);
        }
        return;
    }
    f = fopen(in_name, "rb");
    if (f == 0)
        die("cannot open the input file");
    fseek(f, 0, SEEK_END);
    file_size = ftell(f);
    rewind(f);
    file = page_alloc(file_size);
    if ((long)fread(file, 1, file_size, f) != file_size)
        die("cannot read the input file");
    fclose(f);
}

/* header and flag around the data; returns the bytes up to the flag's end */
int prepare_chunk(int k)
{
    struct chunk *c = &r->chunk[k % NBUF];
    int one = 1;

    c->number = k;
    c->length = chunk_length(k);
    memcpy(c->data, file + (long)k * CHUNK, c->length);
    c->sum = checksum(c->data, c->length, k);
    memcpy(c->data + c->length, &one, sizeof one);
    return (int)(c->data - (char *)c) + c->length + (int)sizeof one;
}

void move_with_immediate(VIP_UINT64 there, VIP_MEM_HANDLE handle)
{
    VIP_DESCRIPTOR *d;
    char *here;
    int k, at, n, bytes, control, answered = 0;

    for (k = 0; k < chunk_count(); k++) {
        if (k - answered == NBUF) {
            d = next_note(0);
            if ((int)d->CS.ImmediateData != answered || d->CS.Length != 0)
                die("the answers are out of order");
            answered++;
            post_note((recv_head - 1) % NRECV);
        }
        reap_all();             /* the chunk that was in this buffer has gone */
        bytes = prepare_chunk(k) - sizeof(int);
        here = (char *)&r->chunk[k % NBUF];
        for (at = 0; at < bytes; at += n) {
            n = bytes - at < PIECE ? bytes - at : PIECE;
            control = VIP_CONTROL_OP_RDMAWRITE;
            if (at + n == bytes)
                control |= VIP_CONTROL_IMMEDIATE;
            rdma(control, here + at, h, n,
                 there + (k % NBUF) * sizeof(struct chunk) + at, handle, k);
        }
        if (k % 8 == 7)
            send_note(&k, sizeof k, 0);
    }
    for (; answered < k; answered++) {
        d = next_note(1);
        if ((int)d->CS.ImmediateData != answered)
            die("the last answers are out of order");
        post_note((recv_head - 1) % NRECV);
    }
}

void move_by_flag(VIP_UINT64 there, VIP_MEM_HANDLE handle)
{
    volatile int *ack = &r->ack;
    int k, bytes;

    for (k = 0; k < chunk_count(); k++) {
        while (k - *ack >= NBUF)
            ;
        reap_all();
        bytes = prepare_chunk(k);
        rdma(VIP_CONTROL_OP_RDMAWRITE, &r->chunk[k % NBUF], h, bytes,
             there + (k % NBUF) * sizeof(struct chunk), handle, 0);
    }
    while (*ack != k)
        ;
    reap_all();
}

void read_back(struct finish *finish)
{
    char *copy = page_alloc(file_size);
    VIP_MEM_HANDLE ch = register_memory(copy, file_size, 0, 0);
    long at;
    int n;

    for (at = 0; at < file_size; at += n) {
        n = file_size - at < CHUNK ? (int)(file_size - at) : CHUNK;
        rdma(VIP_CONTROL_OP_RDMAREAD, copy + at, ch, n,
             finish->store + at, finish->handle, 0);
    }
    reap_all();
    if (memcmp(copy, file, file_size) != 0)
        die("what was read back differs");
    printf("read back %ld bytes: same\n", file_size);
}

void move(void)
{
    struct hello hello;
    struct window window;
    struct finish finish;

    load_file();
    make_region();
    request_connection(vi, local_address(MOVE, port, (int)getpid()),
                       remote_address(host, MOVE, port, 0));
    memset(&hello, 0, sizeof hello);
    hello.size = file_size;
    hello.mode = mode;
    hello.ack_address = (unsigned long)&r->ack;
    hello.ack_handle = window_handle;
    send_note(&hello, sizeof hello, 0);
    take_note(&window, sizeof window);
    if (window.nbuf != NBUF)
        die("the other side was compiled with another NBUF");
    if (mode == 2)
        move_by_flag(window.address, window.handle);
    else
        move_with_immediate(window.address, window.handle);
    memset(&finish, 0, sizeof finish);
    finish.sum = checksum(file, file_size, 0);
    send_note(&finish, sizeof finish, 0);
    take_note(&finish, sizeof finish);
    if (mode == 3 && can_read)
        read_back(&finish);
    else if (mode == 3)
        printf("this NIC has no RDMA read at this level\n");
    printf("moved %ld bytes, sum %08x\n", file_size, finish.sum);
    send_note(&finish, sizeof finish, 0);
    reap_all();
}

int main(int argc, char **argv)
{
    int c;

    myname = "via_rdmamove";
    while ((c = getopt(argc, argv, "so:c:f:z:M:r:d:p:")) != -1)
        switch (c) {
        case 's': isserver = 1; break;
        case 'o': out_name = optarg; break;
        case 'c': host = optarg; break;
        case 'f': in_name = optarg; break;
        case 'z': file_size = atol(optarg); break;
        case 'M': mode = atoi(optarg); break;
        case 'r': level = optarg[0]; break;
        case 'd': device = optarg; break;
        case 'p': port = atoi(optarg); break;
        default:
            fprintf(stderr, "usage: via_rdmamove -s [-o file] | -c host "
                            "[-f file | -z bytes] [-M 1|2|3] [-r d|r]\n");
            return 2;
        }
    if (isserver == (host != 0) || file_size < 1 || mode < 1 || mode > 3)
        die("say either -s or -c host, a size and a mode from 1 to 3");
    open_nic(device, NULL, fatal_callback);
    if (isserver)
        serve();
    else
        move();
    return 0;
}
