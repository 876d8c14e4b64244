// SPDX-License-Identifier: BSD-2-Clause
// mpip_shm_*: the table entries of the shared memory module.
#include "core/process/never_destroyed.hpp"
#include "mpi-adi/transport/protocol/entries.hpp"
#include "mpi-adi/transport/adi/error.hpp"
#include "mpi-adi/transport/shm/shm.hpp"

namespace {
viaduct::NeverDestroyed<viaduct::shm::Shm> shm_module;
viaduct::shm::Card own_card;
}  // namespace

VIADUCT_PROTOCOL_ENTRIES(shm, (*shm_module))

extern "C" {

int mpip_shm_initconns(taskinfo_t* task, void** env) {
    own_card = shm_module->card(task);
    if (own_card.magic == 0) return viaduct::adi::fail(MPIP_ERR_NO_MEM, "there is no shared memory");
    *env = &own_card;
    task->ti_myenv[MPIP_PROTO_SHM] = &own_card;
    task->ti_myenvsize[MPIP_PROTO_SHM] = sizeof own_card;
    return MPIP_SUCCESS;
}

int mpip_shm_getevents(void**, unsigned*, unsigned*, unsigned* n) {
    *n = 0;  // a sleeper has to announce itself first: pt_block
    return MPIP_SUCCESS;
}

int mpip_shm_getpolls(struct pollfd**, int* n, int* timeout) {
    *n = 0;
    *timeout = -1;
    return MPIP_SUCCESS;
}
}
