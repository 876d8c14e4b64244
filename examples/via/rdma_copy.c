/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies a file by RDMA writes: rdma_copy FROM TO. The receiver's program does nothing for a piece but look at the
 * immediate data that comes with it. */
#include "common.h"

#define PIECE 4096
#define PIECES 8 /* so many places for pieces the receiver has */

struct places {
    char *address; /* where the receiver's memory is, in its own address space */
    VIP_MEM_HANDLE handle;
};

static void copy_out(VIP_VI_HANDLE vi, FILE *file) {
    struct places there;
    VIP_DESCRIPTOR *done, *d;
    unsigned place = 0;
    size_t length;

    must(VipRecvWait(vi, 10000, &done), "VipRecvWait"); /* the receiver has told where it takes pieces */
    memcpy(&there, DATA(0), sizeof there);
    do {
        length = fread(DATA(1), 1, PIECE, file);
        d = (VIP_DESCRIPTOR *)memory + 8;
        memset(d, 0, sizeof *d);
        d->CS.SegCount = 2; /* where to, and what */
        d->CS.Control = VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE;
        d->CS.ImmediateData = (VIP_UINT32)length; /* comes to the receiver; 0: the file has ended */
        d->CS.Length = (VIP_UINT32)length;
        d->DS[0].Remote.Data.Address = there.address + place * PIECE;
        d->DS[0].Remote.Handle = there.handle;
        d->DS[1].Local.Data.Address = DATA(1);
        d->DS[1].Local.Handle = handle;
        d->DS[1].Local.Length = (VIP_UINT32)length;
        must(VipPostSend(vi, d, handle), "VipPostSend");
        must(VipSendWait(vi, 10000, &done), "VipSendWait");
        place = (place + 1) % PIECES;
        if (place == 0 && length != 0) { /* all places are used: wait until the receiver has written them out */
            must(VipPostRecv(vi, describe(0, VIP_CONTROL_OP_SENDRECV, DATA(0), 64), handle), "VipPostRecv");
            send_text(vi, 14, "full");
            must(VipRecvWait(vi, 10000, &done), "VipRecvWait");
        }
    } while (length != 0);
}

static void copy_in(VIP_VI_HANDLE vi, FILE *file) {
    struct places here;
    VIP_DESCRIPTOR *done, *again;
    long bytes = 0;
    int place = 0;

    here.address = DATA(1);
    here.handle = handle;
    memcpy(DATA(0), &here, sizeof here);
    must(VipPostSend(vi, describe(12, VIP_CONTROL_OP_SENDRECV, DATA(0), sizeof here), handle), "VipPostSend");
    must(VipSendWait(vi, 10000, &done), "VipSendWait");
    for (;;) {
        unsigned length;
        int is_piece;

        must(VipRecvWait(vi, 10000, &done), "VipRecvWait");
        is_piece = (done->CS.Status & VIP_STATUS_IMMEDIATE) != 0;
        length = done->CS.ImmediateData;
        again = describe((int)(done - (VIP_DESCRIPTOR *)memory), VIP_CONTROL_OP_SENDRECV, DATA(0), 64);
        must(VipPostRecv(vi, again, handle), "VipPostRecv");
        if (!is_piece) {
            send_text(vi, 14, "go on");
            continue;
        }
        if (length == 0) break;
        fwrite(DATA(1) + place * PIECE, 1, length, file);
        bytes += (long)length;
        place = (place + 1) % PIECES;
    }
    printf("copied %ld bytes\n", bytes);
}

int main(int argc, char **argv) {
    VIP_VI_HANDLE vi;
    FILE *file;
    int i;

    if (argc != 3) return fprintf(stderr, "usage: rdma_copy FROM TO\n"), 2;
    begin("/dev/via_eth0");
    file = fopen(argv[caller ? 1 : 2], caller ? "rb" : "wb");
    if (file == NULL) return perror(argv[caller ? 1 : 2]), 1;
    vi = make_vi(VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    /* Immediate data needs a receive, too: one for each piece that can come, and one for the word that follows. */
    for (i = 0; i < (caller ? 1 : PIECES + 1); i++)
        must(VipPostRecv(vi, describe(i, VIP_CONTROL_OP_SENDRECV, DATA(0) + 64 * i, 64), handle), "VipPostRecv");
    if (caller) {
        connect_as_caller(vi, 3);
        copy_out(vi, file);
    } else {
        connect_as_waiter(vi, 3);
        copy_in(vi, file);
    }
    fclose(file);
    must(VipDisconnect(vi), "VipDisconnect");
    return end();
}
