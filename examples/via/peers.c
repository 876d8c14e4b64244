/* SPDX-License-Identifier: BSD-2-Clause */
/* Two peers: neither waits for the other, both ask, and the requests find each other. */
#include "common.h"

int main(void) {
    VIP_VI_HANDLE vi;
    VIP_VI_ATTRIBUTES theirs;
    VIP_DESCRIPTOR *done;
    VIP_RETURN result;
    unsigned polls = 0;

    begin("/dev/via_eth0");
    vi = make_vi(VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    must(VipPostRecv(vi, describe(0, VIP_CONTROL_OP_SENDRECV, DATA(0), 4096), handle), "VipPostRecv");

    /* Each names its own address and that of the other: here one host, with the discriminators 1 and 2. */
    must(VipConnectPeerRequest(vi, address(NULL, caller ? 1 : 2), address("localhost", caller ? 2 : 1), 10000),
         "VipConnectPeerRequest");

    /* The request goes on by itself. A program may look, as here, or wait with VipConnectPeerWait. */
    while ((result = VipConnectPeerDone(vi, &theirs)) == VIP_NOT_DONE) {
        polls++;
        usleep(1000);
    }
    must(result, "VipConnectPeerDone");

    /* The attributes of the other end say what it takes. */
    send_text(vi, 1, caller ? "good day from 1" : "good day from 2");
    must(VipRecvWait(vi, 10000, &done), "VipRecvWait");
    printf("%s: connected after %u looks; the other takes %lu bytes; got: %s\n", side, polls,
           (unsigned long)theirs.MaxTransferSize, DATA(0));

    must(VipDisconnect(vi), "VipDisconnect");
    must(VipDestroyVi(vi), "VipDestroyVi");
    return end();
}
