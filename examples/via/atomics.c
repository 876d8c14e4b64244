/* SPDX-License-Identifier: BSD-2-Clause */
/* A counter in the memory of one process that another one changes by atomic operations, an extension of Viaduct. */
#include <viaduct/ext.h>

#include "common.h"

#define STEPS 1000

struct place {
    char *address;
    VIP_MEM_HANDLE handle;
};

/* One operation on the word there; operands lie at `operands` and the old value comes to the first of them. */
static unsigned long long change(VIP_VI_HANDLE vi, struct place there, int operation, unsigned long long *operands,
                                 int count) {
    VIP_DESCRIPTOR *d = (VIP_DESCRIPTOR *)memory + 8, *done;

    memset(d, 0, sizeof *d);
    d->CS.SegCount = 2; /* which word, and the operands */
    d->CS.Control = (VIP_UINT16)operation;
    d->CS.Length = (VIP_UINT32)(8 * count);
    d->DS[0].Remote.Data.Address = there.address;
    d->DS[0].Remote.Handle = there.handle;
    d->DS[1].Local.Data.Address = operands;
    d->DS[1].Local.Handle = handle;
    d->DS[1].Local.Length = (VIP_UINT32)(8 * count);
    must(VipPostSend(vi, d, handle), "VipPostSend");
    must(VipSendWait(vi, 10000, &done), "VipSendWait");
    return operands[0];
}

int main(void) {
    unsigned long long *word, old = 0;
    VIP_DESCRIPTOR *done;
    VIP_ULONG widths = 0;
    VIP_VI_HANDLE vi;
    struct place there;
    int i;

    begin("/dev/via_eth0");
    must(VipxQueryAtomics(nic, &widths), "VipxQueryAtomics");
    if ((widths & 8) == 0) {
        printf("%s: this NIC has no atomic operations on 8 bytes\n", side);
        return end();
    }
    vi = make_vi(VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    must(VipPostRecv(vi, describe(0, VIP_CONTROL_OP_SENDRECV, DATA(0), 4096), handle), "VipPostRecv");
    word = (unsigned long long *)DATA(2);
    if (caller) {
        connect_as_caller(vi, 5);
        must(VipRecvWait(vi, 10000, &done), "VipRecvWait"); /* where the counter is */
        memcpy(&there, DATA(0), sizeof there);
        for (i = 0; i < STEPS; i++) {
            word[0] = 1;
            old = change(vi, there, VIPX_CONTROL_OP_FETCH_ADD, word, 1);
        }
        printf("caller: the last step found %llu\n", old);
        word[0] = 42; /* the new value, if the old one is what we expect */
        word[1] = STEPS;
        old = change(vi, there, VIPX_CONTROL_OP_COMPARE_SWAP, word, 2);
        printf("caller: compare and swap found %llu\n", old);
        send_text(vi, 1, "ready");
    } else {
        connect_as_waiter(vi, 5);
        there.address = (char *)word;
        there.handle = handle;
        memcpy(DATA(1), &there, sizeof there);
        must(VipPostSend(vi, describe(1, VIP_CONTROL_OP_SENDRECV, DATA(1), sizeof there), handle), "VipPostSend");
        must(VipSendWait(vi, 10000, &done), "VipSendWait");
        must(VipRecvWait(vi, 10000, &done), "VipRecvWait");
        printf("waiter: the counter is %llu\n", *word);
        if (*word != 42) return 1;
    }
    must(VipDisconnect(vi), "VipDisconnect");
    return end();
}
