// SPDX-License-Identifier: BSD-2-Clause
// mpip_rails_*: the table entries of via with several NICs.
#include "core/process/never_destroyed.hpp"
#include "mpi-adi/transport/multirail/multirail.hpp"
#include "mpi-adi/transport/protocol/entries.hpp"

namespace {
viaduct::NeverDestroyed<viaduct::multirail::Multirail> rails_module;
}

VIADUCT_PROTOCOL_ENTRIES(rails, (*rails_module))

extern "C" {

int mpip_rails_initconns(taskinfo_t* task, void** env) {
    const viaduct::multirail::Card& card = rails_module->make_card(task);
    *env = const_cast<viaduct::multirail::Card*>(&card);
    task->ti_myenv[MPIP_PROTO_VIA] = *env;
    task->ti_myenvsize[MPIP_PROTO_VIA] = sizeof card;
    return MPIP_SUCCESS;
}

int mpip_rails_getevents(void**, unsigned*, unsigned*, unsigned* n) {
    *n = 0;  // a VIA queue has no word to sleep on: pt_block
    return MPIP_SUCCESS;
}

int mpip_rails_getpolls(struct pollfd**, int* n, int* timeout) {
    *n = 0;
    *timeout = -1;
    return MPIP_SUCCESS;
}

size_t mpip_rails_of(int rank, struct mpip_rail* out, size_t room) {
    return rails_module->describe(rank, out, room);
}
}
