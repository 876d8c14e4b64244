// SPDX-License-Identifier: BSD-2-Clause
// The entries of the VIA module: mpip_via_*. Each is a few lines over the device.
#include <algorithm>
#include <chrono>

#include "mpi-adi/transport/adi/blocking.hpp"
#include "mpi-adi/transport/adi/counters.hpp"
#include "mpi-adi/transport/adi/entries.hpp"
#include "mpi-adi/transport/adi/error.hpp"
#include "mpi-adi/transport/adi/params.hpp"
#include "mpi-adi/transport/via/bell.hpp"
#include "mpi-adi/transport/via/device.hpp"
#include "mpi-adi/transport/via/registration.hpp"

VIADUCT_COMMON_ENTRIES(via)

using namespace viaduct;
using namespace viaduct::via;

namespace {

Card own_card;

// Replies to requests that lie there, say: the other side begins to copy while this one does.
constexpr int kPacketsBetweenMoves = 16;
// Passes with something to do between two looks for what is not in the receive queue.
constexpr uint32_t kBusyPasses = 256;

// Waits for its turn to be moved.
bool is_queued(const viadev_connection_t* c, const LongTransfer* t) {
    const LongTransfer* one = c->shandle_head;
    while (one != nullptr && one != t) one = one->next;
    return one != nullptr;
}

bool gone(const viadev_connection_t* c) { return c->lost || c->goodbye_had; }

// Says goodbye where everything is sent, and tells whether all has been said and heard.
bool parted(viadev_connection_t* c) {
    if (c->lost) return true;
    if (!c->initialized && !c->opening && !blocked(c)) return true;  // they never talked
    if (!c->initialized) {
        want_connection(c);
        return false;
    }
    if (blocked(c)) {
        want_flow(c);
        return false;
    }
    if (!c->goodbye_sent) send_goodbye(c);
    return c->goodbye_sent && gone(c) && c->sends_outstanding == 0;
}

// F13, H7: goodbyes both ways before anything is disconnected, with everybody's progress going on.
int part_from(const std::vector<viadev_connection_t*>& all) {
    using Clock = std::chrono::steady_clock;
    const long patience = adi::param_number(adi::Param::close_timeout);
    const auto deadline = Clock::now() + std::chrono::seconds(patience);
    for (;;) {
        // All of them at once: one after the other each would cost a turn of both processes.
        bool done = true;
        for (viadev_connection_t* c : all) done = parted(c) && done;
        if (done) return MPIP_SUCCESS;
        viadev_process_send();
        const int rc = mpip_up.progress();
        if (rc < 0) return -rc;
        if (patience != 0 && Clock::now() >= deadline) {
            return adi::fail(MPIP_ERR_OTHER, "not all processes said goodbye within %ld s", patience);
        }
    }
}

}  // namespace

extern "C" {

int mpip_via_initialize(void) {
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
    properties.mp_eager_limit = viadev.eager_limit;
    properties.mp_first_frag = MAX_DATA_SIZE;
    properties.mp_min_frag = kR3Data;
    properties.mp_max_frag = viadev.attributes.MaxTransferSize;
    properties.mp_cache_size = 256;
    properties.mp_flags = MPIP_PROP_PUT | (viadev.rdma_read ? MPIP_PROP_GET : 0);
    mpip_protocols[MPIP_PROTO_VIA].pt_mtu = VBUF_BUFFER_SIZE;
    return MPIP_SUCCESS;
}

int mpip_via_initconns(taskinfo_t* task, void** env) {
    prepare_rules(task);
    own_card = make_card();
    *env = &own_card;
    task->ti_myenv[MPIP_PROTO_VIA] = &own_card;
    task->ti_myenvsize[MPIP_PROTO_VIA] = sizeof own_card;
    return MPIP_SUCCESS;
}

int mpip_via_reach(taskinfo_t* task, int rank) {
    if (rank == task->ti_index) return 0;
    const Card* mine = card_of(task, task->ti_index);
    const Card* theirs = card_of(task, rank);
    return mine != nullptr && theirs != nullptr && reaches(*mine, *theirs);
}

int mpip_via_makeconns(taskinfo_t* task, void*) { return do_setup(task); }

int mpip_via_addconns(taskinfo_t* task, void*) {
    viadev.connections.resize(static_cast<size_t>(task->ti_nprocs));
    viadev.task = task;
    viadev.on_demand = wants_on_demand(task);
    viadev.all_joined = std::chrono::steady_clock::now() +
                        std::chrono::seconds(adi::param_number(adi::Param::connect_timeout));
    int rc = viadev.on_demand ? hang_out_bell(task) : MPIP_SUCCESS;
    if (rc == MPIP_SUCCESS) rc = grow_queues(task);
    if (rc != MPIP_SUCCESS) return rc;
    for (procinfo* info = task->ti_proto[MPIP_PROTO_VIA]; info != nullptr; info = info->pi_next) {
        const int rank = info->pi_proc->p_gid.pg_wrank;
        if ((info->pi_proc->p_flags & MPIP_PROC_ATTACHED) != 0 || rank == task->ti_index) continue;
        if (viadev.connections[static_cast<size_t>(rank)] != nullptr) continue;
        make_connection(rank, info->pi_proc);
    }
    return viadev.on_demand ? MPIP_SUCCESS : connect_all(task);
}

int mpip_via_completeconns(taskinfo_t*) { return MPIP_SUCCESS; }

int mpip_via_undoconns(taskinfo_t*, void*) {
    if (viadev.cq != nullptr) do_stop();
    return MPIP_SUCCESS;
}

int mpip_via_closeconns(process_t** procs, int count, void*) {
    std::vector<viadev_connection_t*> all;
    if (procs == nullptr) {
        for (const auto& c : viadev.connections) {
            if (c != nullptr) all.push_back(c.get());
        }
    } else {
        for (int i = 0; i < count; ++i) {
            if ((procs[i]->p_flags & MPIP_PROC_REMOVED) != 0 && procs[i]->p_pm != nullptr) {
                all.push_back(connection_of(procs[i]));
            }
        }
    }
    const int rc = part_from(all);
    if (procs == nullptr) {
        if (viadev.cq != nullptr) do_stop();
        return rc;
    }
    for (viadev_connection_t* c : all) {
        if (!c->lost) {
            close_slots(c);
            disconnect(c);
        }
        free_slots(c);
        c->lost = true;
        adi::detach(c->proc);
    }
    return rc;
}

int mpip_via_finalize(void) {
    if (viadev.cq != nullptr) do_stop();
    close_nic();
    return MPIP_SUCCESS;
}

int mpip_via_fsend(process_t* proc, const void* buf, size_t count, const mpip_type_t* type, int tag,
                   mpip_comm_t* comm, int mode) {
    viadev_connection_t* c = connection_of(proc);
    const size_t len = adi::bytes_of(count, type);
    const bool contiguous = type == nullptr || (type->d_flags & MPIP_TYPE_CONTIG) != 0;
    if (proc->p_sendhead == nullptr && contiguous && (mode & MPIP_MODE_SYNC) == 0 && !c->lost) [[likely]] {
        if (may_write_eager(c, len) && write_eager_now(c, buf, len, comm->c_rank, tag, comm->c_sndctxt, mode)) [[likely]] {
            ++adi::counters[MPIP_PROTO_VIA].mc_eager;
            return MPIP_SUCCESS;
        }
        const EagerWay way = len <= MAX_DATA_SIZE ? eager_way(c, len) : EagerWay::none;
        if (way != EagerWay::none) [[likely]] {
            const int rc = MPID_VIA_eager_send(c, buf, len, comm->c_rank, tag, comm->c_sndctxt, mode, way);
            if (rc == MPIP_SUCCESS) [[likely]]
                return rc;
        }
    }
    if ((mode & MPIP_MODE_TRY) != 0) return MPIP_AGAIN;
    return adi::blocking_send(proc, buf, count, type, tag, comm, mode);
}

void mpip_via_queuedsend(process_t* proc) {
    viadev_connection_t* c = connection_of(proc);
    if (c->lost) {
        while (proc->p_sendhead != nullptr) adi::end_request(mpip_deqsend(proc), MPIP_ERR_PROC_FAILED);
        return;
    }
    if (!c->initialized) return want_connection(c);
    start_queued_sends(c);
    if (proc->p_sendhead != nullptr && c->credits.can_send()) want_flow(c);
}

int mpip_via_uirecv(process_t*, unexmsg_t* message, mpip_req_t* req) {
    Held* held = static_cast<Held*>(message->um_data);
    message->um_data = nullptr;
    if (held->kind == Held::Kind::series) {
        deliver_series(static_cast<EagerSeries*>(held), req);
        return MPIP_SUCCESS;
    }
    LongStart* start = static_cast<LongStart*>(held);
    if (start->connection->lost) {
        adi::end_request(req, MPIP_ERR_PROC_FAILED);
    } else {
        start_long_receive(*start, req);
    }
    keep_start(start);
    return MPIP_SUCCESS;
}

void mpip_via_ufree(unexmsg_t* message) {
    Held* held = static_cast<Held*>(message->um_data);
    message->um_data = nullptr;
    if (held == nullptr) return;
    if (held->kind == Held::Kind::series) {
        abandon_series(static_cast<EagerSeries*>(held));
    } else {
        keep_start(static_cast<LongStart*>(held));
    }
}

int mpip_via_progress_nblk(int) {
    int done = MPID_VIA_DeviceCheck();
    if (viadev.flow_head != nullptr) done += work_on_flow_list();
    if (viadev.local_waits != 0 || (done == 0 && viadev.sends_outstanding != 0)) viadev_process_send();
    if (viadev.finished != nullptr) {
        complete_finished();
        done = 1;
    }
    if (viadev.moved) {
        viadev.moved = false;
        int packets = 0;
        while (packets < kPacketsBetweenMoves && MPID_VIA_DeviceCheck() != 0) ++packets;
    }
    const bool idle = done == 0;
    if (idle && viadev.chores_head != nullptr) done = do_chores();
    // Now and then also by those who are never idle: somebody may wait for them.
    if (idle || ++viadev.busy_passes % kBusyPasses == 0) {
        look_for_lost();
        if (!viadev.openings.empty()) done += static_cast<int>(advance_openings());
    }
    return done;
}

int mpip_via_block(unsigned timeout_us) {
    if (viadev.flow_head != nullptr || viadev.chores_head != nullptr || viadev.finished != nullptr) return 0;
    VIP_ULONG timeout = std::max(1U, timeout_us / 1000);
    // What ends those is a send or a request, and the wait is for receives.
    if (viadev.local_waits != 0 || !viadev.openings.empty()) timeout = 1;
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN receive;
    if (!leave_slots()) return 0;
    VIP_RETURN rc;
    {
        const adi::Asleep asleep;
        rc = VipCQWait(viadev.cq, timeout, &vi, &receive);
    }
    return_to_slots();
    if (rc == VIP_SUCCESS) take_completion(vi);
    return 0;
}

int mpip_via_cancelsend(mpip_req_t* req) { return cancel_send(req); }

void mpip_via_error_request(mpip_req_t* req) {
    viadev_connection_t* c = connection_of(req->r_proc);
    if (viadev.ids.find(req->r_id) != req) return;
    LongTransfer* t = transfer_of(req);
    if (t == nullptr || t->fetching || is_queued(c, t) || t->offset != 0) {
        fail_connection(c, "the engine ended one of its requests underway");  // which ends this one too
        return;
    }
    forget_transfer(req);
    adi::end_request(req, MPIP_ERR_PROC_FAILED);
}

void mpip_via_pressure(int on) {
    viadev.envelopes_only = on != 0;
    for (const auto& c : viadev.connections) {
        // Tells them; else the next packet does.
        if (c != nullptr && c->initialized && c->credits.may_send_empty_noop()) send_noop(c.get());
    }
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

int mpip_via_ping(mpip_comm_t* comm, int rank) {
    const process_t* proc = comm->c_procs[rank];
    viadev_connection_t* c = connection_of(proc);
    while (viadev.on_demand && c != nullptr && !c->lost && !c->initialized) {
        want_connection(c);
        const int rc = mpip_up.progress();
        if (rc < 0) return -rc;
    }
    if (c == nullptr || c->lost || !c->initialized) return MPIP_ERR_PROC_FAILED;
    VIP_VI_STATE state;
    VIP_VI_ATTRIBUTES attributes;
    VIP_BOOLEAN send_empty, recv_empty;
    if (VipQueryVi(c->vi, &state, &attributes, &send_empty, &recv_empty) != VIP_SUCCESS)
        return MPIP_ERR_PROC_FAILED;
    return state == VIP_STATE_CONNECTED ? MPIP_SUCCESS : MPIP_ERR_PROC_FAILED;
}

void* mpip_alloc_mem(size_t bytes) { return viadev.cq != nullptr ? allocate_registered(bytes) : nullptr; }
int mpip_free_mem(void* address) { return free_registered(address) ? MPIP_SUCCESS : MPIP_ERR_ARG; }
}
