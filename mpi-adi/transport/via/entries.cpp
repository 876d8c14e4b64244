// SPDX-License-Identifier: BSD-2-Clause
// mpip_via_*: the table entries of the VIA module.
#include "mpi-adi/transport/protocol/entries.hpp"
#include "mpi-adi/transport/via/transport.hpp"

namespace viaduct::via {
NeverDestroyed<ViaTransport> via_module;
}

VIADUCT_PROTOCOL_ENTRIES(via, (*viaduct::via::via_module))

extern "C" {

int mpip_via_initconns(taskinfo_t* task, void** env) {
    const viaduct::via::Card& card = viaduct::via::via_module->make_card(task);
    *env = const_cast<viaduct::via::Card*>(&card);
    task->ti_myenv[MPIP_PROTO_VIA] = *env;
    task->ti_myenvsize[MPIP_PROTO_VIA] = sizeof card;
    return MPIP_SUCCESS;
}

int mpip_via_getevents(void**, unsigned*, unsigned*, unsigned* n) {
    *n = 0;  // a VIA queue has no word to sleep on: pt_block
    return MPIP_SUCCESS;
}

int mpip_via_getpolls(struct pollfd**, int* n, int* timeout) {
    *n = 0;
    *timeout = -1;
    return MPIP_SUCCESS;
}

void* mpip_alloc_mem(size_t bytes) {
    viaduct::via::Nic& nic = viaduct::via::via_module->nic;
    return nic.cq != nullptr ? nic.registrations.allocate(bytes) : nullptr;
}
int mpip_free_mem(void* address) {
    return viaduct::via::via_module->nic.registrations.free(address) ? MPIP_SUCCESS : MPIP_ERR_ARG;
}
}
