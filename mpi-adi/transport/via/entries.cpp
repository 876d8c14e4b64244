// SPDX-License-Identifier: BSD-2-Clause
// The entries of the VIA module: mpip_via_*. Each is a few lines over the device.
#include <algorithm>
#include <chrono>

#include "mpi-adi/transport/adi/blocking.hpp"
#include "mpi-adi/transport/adi/counters.hpp"
#include "mpi-adi/transport/protocol/entries.hpp"
#include "mpi-adi/transport/adi/error.hpp"
#include "mpi-adi/transport/adi/params.hpp"
#include "mpi-adi/transport/via/bell.hpp"
#include "mpi-adi/transport/via/device.hpp"
#include "mpi-adi/transport/via/registration.hpp"

namespace viaduct::via {

namespace {

// Replies to requests that lie there, say: the other side begins to copy while this one does.
constexpr int kPacketsBetweenMoves = 16;
// Passes with something to do between two looks for what is not in the receive queue.
constexpr uint32_t kBusyPasses = 256;

}  // namespace

int Via::initialize() {
    const int rc = open_nic();
    if (rc != MPIP_SUCCESS) {
        close_nic();
        return rc;
    }
    mpip_properties& properties = mpip_protocols[MPIP_PROTO_VIA].pt_prop;
    properties = {};
    properties.mp_exclusivity = 20;
    properties.mp_latency_ns = 100;
    properties.mp_bandwidth_mb = 10000;
    properties.mp_eager_limit = eager_limit;
    properties.mp_first_frag = MAX_DATA_SIZE;
    properties.mp_min_frag = kR3Data;
    properties.mp_max_frag = attributes.MaxTransferSize;
    properties.mp_cache_size = 256;
    properties.mp_flags = MPIP_PROP_PUT | (rdma_read ? MPIP_PROP_GET : 0);
    mpip_protocols[MPIP_PROTO_VIA].pt_mtu = VBUF_BUFFER_SIZE;
    return MPIP_SUCCESS;
}

bool Via::reaches(const taskinfo_t* all, int rank) const {
    if (rank == all->ti_index) return false;
    const Card* mine = card_of(all, all->ti_index);
    const Card* theirs = card_of(all, rank);
    return mine != nullptr && theirs != nullptr && via::reaches(*mine, *theirs);
}

// At first, and again when processes join.
int Via::connect(taskinfo_t* all) {
    if (cq == nullptr) return do_setup(all);
    make_room(static_cast<size_t>(all->ti_nprocs));
    task = all;
    on_demand = wants_on_demand(all);
    all_joined =
        std::chrono::steady_clock::now() + std::chrono::seconds(adi::param_number(adi::Param::connect_timeout));
    int rc = on_demand ? hang_out_bell(all) : MPIP_SUCCESS;
    if (rc == MPIP_SUCCESS) rc = grow_queues(all);
    if (rc != MPIP_SUCCESS) return rc;
    for (procinfo* info = all->ti_proto[MPIP_PROTO_VIA]; info != nullptr; info = info->pi_next) {
        const int rank = info->pi_proc->p_gid.pg_wrank;
        if ((info->pi_proc->p_flags & MPIP_PROC_ATTACHED) != 0 || rank == all->ti_index) continue;
        if (peer(static_cast<size_t>(rank)) == nullptr) make_connection(rank, info->pi_proc);
    }
    return on_demand ? MPIP_SUCCESS : connect_all(all);
}

void Via::finalize() {
    if (cq != nullptr) do_stop();
    close_nic();
}

int Via::progress() {
    int done = MPID_VIA_DeviceCheck();
    if (flow_head != nullptr) done += work_on_flow_list();
    if (local_waits != 0 || (done == 0 && sends_outstanding != 0)) viadev_process_send();
    if (has_landed()) {
        finish_landed();
        done = 1;
    }
    if (has_moved()) {
        int packets = 0;
        while (packets < kPacketsBetweenMoves && MPID_VIA_DeviceCheck() != 0) ++packets;
    }
    const bool idle = done == 0;
    if (idle && chores_head != nullptr) done = do_chores();
    // Now and then also by those who are never idle: somebody may wait for them.
    if (idle || ++busy_passes % kBusyPasses == 0) {
        look_for_lost();
        if (!openings.empty()) done += static_cast<int>(advance_openings());
    }
    return done;
}

void Via::block(unsigned timeout_us) {
    if (flow_head != nullptr || chores_head != nullptr || has_landed() || cq == nullptr) return;
    VIP_ULONG timeout = std::max(1U, timeout_us / 1000);
    // What ends those is a send or a request, and the wait is for receives.
    if (local_waits != 0 || !openings.empty()) timeout = 1;
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN receive;
    if (!leave_slots()) return;
    VIP_RETURN rc;
    {
        const adi::Asleep asleep;
        rc = VipCQWait(cq, timeout, &vi, &receive);
    }
    return_to_slots();
    if (rc == VIP_SUCCESS) take_completion(vi);
}

}  // namespace viaduct::via

VIADUCT_PROTOCOL_ENTRIES(via, viaduct::via::viadev)

extern "C" {

int mpip_via_initconns(taskinfo_t* task, void** env) {
    using namespace viaduct::via;
    static Card own_card;
    prepare_rules(task);
    own_card = make_card();
    *env = &own_card;
    task->ti_myenv[MPIP_PROTO_VIA] = &own_card;
    task->ti_myenvsize[MPIP_PROTO_VIA] = sizeof own_card;
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
    return viaduct::via::viadev.cq != nullptr ? viaduct::via::allocate_registered(bytes) : nullptr;
}
int mpip_free_mem(void* address) { return viaduct::via::free_registered(address) ? MPIP_SUCCESS : MPIP_ERR_ARG; }
}
