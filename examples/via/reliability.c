/* SPDX-License-Identifier: BSD-2-Clause */
/* The three reliability levels, and what each does with a message that meets no receive: Unreliable loses it and goes on;
 * the reliable ones break the connection, and the sender's descriptor says so. */
#include "common.h"

static const struct {
    VIP_RELIABILITY_LEVEL level;
    const char *name;
} levels[] = {{VIP_SERVICE_UNRELIABLE, "Unreliable"},
              {VIP_SERVICE_RELIABLE_DELIVERY, "Reliable Delivery"},
              {VIP_SERVICE_RELIABLE_RECEPTION, "Reliable Reception"}};

/* A broken connection is told to this handler, too. Here the descriptors tell enough. */
static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error) {
    (void)context;
    (void)error;
}

static void try_level(int which) {
    VIP_VI_HANDLE vi = make_vi(levels[which].level, NULL, NULL);
    VIP_VI_ATTRIBUTES now;
    VIP_VI_STATE state = VIP_STATE_CONNECTED;
    VIP_DESCRIPTOR *done;
    VIP_BOOLEAN send_empty, receive_empty;
    int i;

    if (!caller) { /* never posts a receive, and stays until the other has left or the connection is broken */
        connect_as_waiter(vi, 10 + which);
        while (state == VIP_STATE_CONNECTED) {
            VipRecvDone(vi, &done); /* drives NICs that need it */
            usleep(1000);
            must(VipQueryVi(vi, &state, &now, &send_empty, &receive_empty), "VipQueryVi");
        }
    } else {
        connect_as_caller(vi, 10 + which);
        strcpy(DATA(0), "into nothing");
        must(VipPostSend(vi, describe(0, VIP_CONTROL_OP_SENDRECV, DATA(0), 13), handle), "VipPostSend");
        if (VipSendWait(vi, 5000, &done) == VIP_TIMEOUT) exit(1);
        for (i = 0; i < 500 && state == VIP_STATE_CONNECTED; i++) { /* delivery: the break comes after the send */
            must(VipQueryVi(vi, &state, &now, &send_empty, &receive_empty), "VipQueryVi");
            if (levels[which].level == VIP_SERVICE_UNRELIABLE) break;
            VipSendDone(vi, &done);
            usleep(1000);
        }
        printf("%s: the connection %s\n", levels[which].name, state == VIP_STATE_CONNECTED ? "goes on" : "is broken");
        if ((state == VIP_STATE_CONNECTED) != (levels[which].level == VIP_SERVICE_UNRELIABLE)) exit(1);
    }
    VipDisconnect(vi);
    while (VipRecvDone(vi, &done) == VIP_SUCCESS || VipSendDone(vi, &done) == VIP_SUCCESS) /* flushed ones */
        ;
    must(VipDestroyVi(vi), "VipDestroyVi");
}

int main(void) {
    int which;

    begin("/dev/via_eth0");
    must(VipErrorCallback(nic, NULL, on_error), "VipErrorCallback");
    for (which = 0; which < 3; which++) try_level(which);
    return end();
}
