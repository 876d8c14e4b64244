/* SPDX-License-Identifier: BSD-2-Clause */
/* A connection between a client and a server, a request and its answer. */
#include "common.h"

int main(void) {
    VIP_VI_HANDLE vi;
    VIP_DESCRIPTOR *done;

    begin("/dev/via_eth0");
    vi = make_vi(VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);

    /* One message comes to each side. Its receive is there before the other side can send. */
    must(VipPostRecv(vi, describe(0, VIP_CONTROL_OP_SENDRECV, DATA(0), 4096), handle), "VipPostRecv");

    if (caller) {
        connect_as_caller(vi, 1);
        send_text(vi, 1, "what is the time?");
        must(VipRecvWait(vi, 10000, &done), "VipRecvWait");
        printf("client: the answer has %u bytes: %s\n", (unsigned)done->CS.Length, DATA(0));
    } else {
        connect_as_waiter(vi, 1);
        must(VipRecvWait(vi, 10000, &done), "VipRecvWait");
        printf("server: asked: %s\n", DATA(0));
        send_text(vi, 1, "ten to four");
    }

    /* Each side leaves by itself. What has arrived before is still delivered. */
    must(VipDisconnect(vi), "VipDisconnect");
    must(VipDestroyVi(vi), "VipDestroyVi");
    return end();
}
