// SPDX-License-Identifier: BSD-2-Clause
// mpip_tcp_*: the table entries of the TCP module.
#include "mpi-adi/transport/protocol/entries.hpp"
#include "mpi-adi/transport/tcp/tcp.hpp"

namespace viaduct::tcp {
NeverDestroyed<Tcp> tcp_module;
}

namespace {
viaduct::tcp::Card own_card, outer_card;
using viaduct::tcp::tcp_module;
}  // namespace

VIADUCT_PROTOCOL_ENTRIES(tcp, (*tcp_module))

extern "C" {

int mpip_tcp_initconns(taskinfo_t* task, void** env) {
    const int rc = tcp_module->open(task, &own_card, &outer_card);
    if (rc != MPIP_SUCCESS) return rc;
    *env = &own_card;
    task->ti_myenv[MPIP_PROTO_TCP] = &own_card;
    task->ti_myenvsize[MPIP_PROTO_TCP] = sizeof own_card;
    task->ti_outerenv[MPIP_PROTO_TCP] = &outer_card;
    task->ti_outerenvsize[MPIP_PROTO_TCP] = sizeof outer_card;
    return MPIP_SUCCESS;
}

int mpip_tcp_getevents(void**, unsigned*, unsigned*, unsigned* n) {
    *n = 0;
    return MPIP_SUCCESS;
}

int mpip_tcp_getpolls(struct pollfd** polls, int* n, int* timeout) {
    static struct pollfd watched;
    watched = {tcp_module->watched(), POLLIN, 0};
    *polls = &watched;
    *n = watched.fd >= 0 ? 1 : 0;
    *timeout = -1;
    return MPIP_SUCCESS;
}
}
