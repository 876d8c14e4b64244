/* SPDX-License-Identifier: BSD-2-Clause */
/* Several NICs in one process: several_nics DEVICE... opens each, says what it can do, and sends a message from a VI of it
 * to another one of it. Everything belongs to a NIC: memory is registered with each that is to reach it. */
#include "common.h"

struct opened {
    VIP_NIC_HANDLE nic;
    VIP_PROTECTION_HANDLE ptag;
    char *memory;
    VIP_MEM_HANDLE handle;
    VIP_NIC_ATTRIBUTES facts;
};

/* Both ends in one process: neither may block, so the peer-to-peer way it is. */
static void send_to_itself(int number) {
    VIP_VI_HANDLE from = make_vi(VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    VIP_VI_HANDLE to = make_vi(VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    VIP_VI_ATTRIBUTES theirs;
    VIP_DESCRIPTOR *done;

    must(VipPostRecv(to, describe(1, VIP_CONTROL_OP_SENDRECV, DATA(1), 4096), handle), "VipPostRecv");
    must(VipConnectPeerRequest(from, address(NULL, number), address(NULL, number + 1), 10000), "VipConnectPeerRequest");
    must(VipConnectPeerRequest(to, address(NULL, number + 1), address(NULL, number), 10000), "VipConnectPeerRequest");
    must(VipConnectPeerWait(from, &theirs), "VipConnectPeerWait");
    must(VipConnectPeerWait(to, &theirs), "VipConnectPeerWait");
    send_text(from, 0, "once around");
    must(VipRecvWait(to, 10000, &done), "VipRecvWait");
    printf("    arrived: %s\n", DATA(1));
    VipDisconnect(from);
    VipDisconnect(to);
}

int main(int argc, char **argv) {
    struct opened all[8];
    int i, count = argc - 1 < 8 ? argc - 1 : 8;

    side = "several_nics";
    if (count == 0) return fprintf(stderr, "usage: several_nics DEVICE...\n"), 2;
    for (i = 0; i < count; i++) {
        open_nic(argv[i + 1]);
        all[i].nic = nic;
        all[i].ptag = ptag;
        all[i].memory = memory;
        all[i].handle = handle;
        all[i].facts = facts;
    }
    for (i = 0; i < count; i++) { /* the helpers work with the NIC that these name */
        nic = all[i].nic;
        ptag = all[i].ptag;
        memory = all[i].memory;
        handle = all[i].handle;
        facts = all[i].facts;
        printf("%s: transfers of up to %lu bytes, %lu VIs, RDMA read %s\n", argv[i + 1],
               (unsigned long)facts.MaxTransferSize, (unsigned long)facts.MaxVI, facts.RDMAReadSupport ? "yes" : "no");
        send_to_itself(20 + 2 * i);
        must(VipCloseNic(nic), "VipCloseNic");
    }
    return 0;
}
