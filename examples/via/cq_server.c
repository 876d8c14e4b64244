/* SPDX-License-Identifier: BSD-2-Clause */
/* A server with many clients: the receives of all its VIs complete into one completion queue, which it waits on. */
#include "common.h"

#define CLIENTS 8

static void client(void) {
    char text[32];
    VIP_VI_HANDLE vis[CLIENTS];
    VIP_DESCRIPTOR *done;
    int i;

    for (i = 0; i < CLIENTS; i++) {
        vis[i] = make_vi(VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
        must(VipPostRecv(vis[i], describe(i, VIP_CONTROL_OP_SENDRECV, DATA(0) + 64 * i, 64), handle), "VipPostRecv");
        connect_as_caller(vis[i], 7);
    }
    for (i = CLIENTS - 1; i >= 0; i--) { /* in another order than they have connected */
        snprintf(text, sizeof text, "order %d", i);
        send_text(vis[i], 12, text);
    }
    for (i = 0; i < CLIENTS; i++) {
        must(VipRecvWait(vis[i], 10000, &done), "VipRecvWait");
        if (atoi(DATA(0) + 64 * i) != i) exit(1);
        must(VipDisconnect(vis[i]), "VipDisconnect");
    }
    printf("clients: %d answers\n", CLIENTS);
}

static void server(void) {
    VIP_CQ_HANDLE queue;
    VIP_VI_HANDLE vis[CLIENTS], from;
    VIP_BOOLEAN receives;
    VIP_DESCRIPTOR *done;
    char text[32];
    int i, served;

    /* Room for every receive that can complete before the server looks. */
    must(VipCreateCQ(nic, CLIENTS, &queue), "VipCreateCQ");
    for (i = 0; i < CLIENTS; i++) {
        vis[i] = make_vi(VIP_SERVICE_RELIABLE_DELIVERY, NULL, queue);
        must(VipPostRecv(vis[i], describe(i, VIP_CONTROL_OP_SENDRECV, DATA(0) + 64 * i, 64), handle), "VipPostRecv");
        connect_as_waiter(vis[i], 7);
    }
    for (served = 0; served < CLIENTS; served++) {
        /* The queue names the VI; the descriptor is then taken from that. */
        must(VipCQWait(queue, 10000, &from, &receives), "VipCQWait");
        must(VipRecvDone(from, &done), "VipRecvDone");
        snprintf(text, sizeof text, "%s", strchr((char *)done->DS[0].Local.Data.Address, ' ') + 1);
        send_text(from, 12, text);
    }
    printf("server: %d requests by one queue\n", served);
    for (i = 0; i < CLIENTS; i++) {
        must(VipDisconnect(vis[i]), "VipDisconnect");
        must(VipDestroyVi(vis[i]), "VipDestroyVi");
    }
    must(VipDestroyCQ(queue), "VipDestroyCQ");
}

int main(void) {
    begin("/dev/via_eth0");
    if (caller)
        client();
    else
        server();
    return end();
}
