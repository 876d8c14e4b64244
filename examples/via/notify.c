/* SPDX-License-Identifier: BSD-2-Clause */
/* A handler that is called for each message that has come, on a thread of the library, while the program does else. */
#include <semaphore.h>

#include "common.h"

#define MESSAGES 5

static sem_t all_there;
static int seen;

/* The descriptor is handed over as by VipRecvDone. A notification is for one descriptor: it is requested again. */
static void on_message(VIP_PVOID context, VIP_NIC_HANDLE nic_of_it, VIP_VI_HANDLE vi, VIP_DESCRIPTOR *d) {
    const char *greeting = context;

    (void)nic_of_it;
    printf("handler: %s: %s\n", greeting, (char *)d->DS[0].Local.Data.Address);
    if (++seen == MESSAGES)
        sem_post(&all_there);
    else
        must(VipRecvNotify(vi, context, on_message), "VipRecvNotify");
}

int main(void) {
    VIP_VI_HANDLE vi;
    char text[32];
    int i;

    begin("/dev/via_eth0");
    vi = make_vi(VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    if (caller) {
        connect_as_caller(vi, 4);
        for (i = 0; i < MESSAGES; i++) {
            snprintf(text, sizeof text, "message %d", i);
            send_text(vi, 0, text);
        }
    } else {
        sem_init(&all_there, 0, 0);
        for (i = 0; i < MESSAGES; i++)
            must(VipPostRecv(vi, describe(i, VIP_CONTROL_OP_SENDRECV, DATA(i), 4096), handle), "VipPostRecv");
        must(VipRecvNotify(vi, "heard", on_message), "VipRecvNotify");
        connect_as_waiter(vi, 4);
        sem_wait(&all_there); /* the program could do anything here */
        printf("waiter: %d messages\n", seen);
    }
    must(VipDisconnect(vi), "VipDisconnect");
    must(VipDestroyVi(vi), "VipDestroyVi");
    return end();
}
