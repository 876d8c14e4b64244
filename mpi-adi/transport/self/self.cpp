// SPDX-License-Identifier: BSD-2-Clause
// The module for messages of a process to itself: straight into the posted receive, or to the engine's
// unexpected queue. A synchronous send waits there as an envelope until it is received (spec/adi 6.4, C28).
#include <algorithm>
#include <cstdlib>
#include <memory>

#include "mpi-adi/transport/adi/blocking.hpp"
#include "mpi-adi/transport/adi/counters.hpp"
#include "mpi-adi/transport/adi/entries.hpp"
#include "mpi-adi/transport/adi/error.hpp"

VIADUCT_COMMON_ENTRIES(self)

namespace viaduct::adi {

namespace {

bool contiguous(const mpip_type_t* type) {
    return type == nullptr || (type->d_flags & MPIP_TYPE_CONTIG) != 0;
}

// From send to receive, either of which may have gaps.
void copy(const mpip_req_t* from, mpip_req_t* to) {
    const size_t bytes = std::min(from->r_bytes, to->r_bytes);
    if (mpip_req_is_contig(from)) {
        mpip_req_deliver(to, 0, from->r_buf, bytes);
        return;
    }
    char piece[4096];
    for (size_t done = 0; done < bytes;) {
        const size_t now = std::min(sizeof piece, bytes - done);
        mpip_req_collect(from, done, piece, now);
        mpip_req_deliver(to, done, piece, now);
        done += now;
    }
}

void finish_pair(mpip_req_t* send, mpip_req_t* receive) {
    copy(send, receive);
    mpip_req_received(receive, send->r_bytes);
    send->r_length = static_cast<int64_t>(send->r_bytes);
    --mpip_protocols[MPIP_PROTO_SELF].pt_nactv;
    mpip_req_done(receive);
    mpip_req_done(send);
}

// A message whose bytes lie at `data`: the engine takes it now, matched or unexpected.
void hand_over(process_t* proc, const envelope& env, const void* data) {
    mpip_req_t* match = nullptr;
    const size_t bytes = static_cast<size_t>(env.ev_len);
    ++counters[MPIP_PROTO_SELF].mc_eager;
    if (mpip_up.arrived(proc, &env, data, bytes, nullptr, &match) == MPIP_IN_MATCHED) {
        mpip_req_deliver_all(match, data, bytes);
    }
}

void start(process_t* proc, mpip_req_t* req) {
    envelope env = {
        req->r_ctxt, req->r_mode, req->r_rank, req->r_tag, static_cast<int64_t>(req->r_bytes), 0, 0};
    if ((req->r_mode & MPIP_MODE_SYNC) != 0) {
        env.ev_mode |= MPIP_MODE_RTS;
        env.ev_sendreq = req->r_id = reinterpret_cast<uintptr_t>(req);  // stays inside this process
        req->r_state = MPIP_REQ_STARTED;
        ++mpip_protocols[MPIP_PROTO_SELF].pt_nactv;
        mpip_req_t* match = nullptr;
        ++counters[MPIP_PROTO_SELF].mc_long;
        if (mpip_up.arrived(proc, &env, nullptr, 0, req, &match) == MPIP_IN_MATCHED) finish_pair(req, match);
        return;
    }
    if (mpip_req_is_contig(req)) {
        hand_over(proc, env, req->r_buf);
    } else {
        const std::unique_ptr<char[]> packed(new char[req->r_bytes]);
        mpip_req_collect(req, 0, packed.get(), req->r_bytes);
        hand_over(proc, env, packed.get());
    }
    req->r_length = env.ev_len;
    mpip_req_done(req);
}

}  // namespace

}  // namespace viaduct::adi

using namespace viaduct::adi;

VIADUCT_DECLARE_MODULE(self)

extern "C" {

void mpip_self_bind(const struct mpip_device*, struct protocol* table) { VIADUCT_BIND_MODULE(table, self); }

int mpip_self_initialize(void) {
    mpip_properties& properties = mpip_protocols[MPIP_PROTO_SELF].pt_prop;
    properties = {};
    properties.mp_exclusivity = 100;
    properties.mp_latency_ns = 20;
    properties.mp_bandwidth_mb = 50000;
    properties.mp_eager_limit = properties.mp_first_frag = properties.mp_max_frag = SIZE_MAX;
    return MPIP_SUCCESS;
}

int mpip_self_initconns(taskinfo_t* task, void** env) {
    static char present = 1;
    *env = &present;
    task->ti_myenvsize[MPIP_PROTO_SELF] = 1;
    return MPIP_SUCCESS;
}

int mpip_self_makeconns(taskinfo_t* task, void*) {
    task->ti_procs[task->ti_index].pi_proc->p_flags |= MPIP_PROC_ATTACHED;
    mpip_protocols[MPIP_PROTO_SELF].pt_nprocs = 1;
    return MPIP_SUCCESS;
}

int mpip_self_addconns(taskinfo_t*, void*) { return MPIP_SUCCESS; }
int mpip_self_completeconns(taskinfo_t*) { return MPIP_SUCCESS; }
int mpip_self_closeconns(process_t**, int, void*) { return MPIP_SUCCESS; }
int mpip_self_undoconns(taskinfo_t*, void*) { return MPIP_SUCCESS; }
int mpip_self_finalize(void) { return MPIP_SUCCESS; }
int mpip_self_ping(mpip_comm_t*, int) { return MPIP_SUCCESS; }
int mpip_self_reach(taskinfo_t* task, int rank) { return rank == task->ti_index; }
int mpip_self_block(unsigned) { return 0; }
void mpip_self_pressure(int) {}
int mpip_self_progress_nblk(int) { return 0; }

int mpip_self_fsend(process_t* proc, const void* buf, size_t count, const mpip_type_t* type, int tag,
                    mpip_comm_t* comm, int mode) {
    if ((mode & MPIP_MODE_SYNC) != 0 || !contiguous(type)) {
        if ((mode & MPIP_MODE_TRY) != 0) return MPIP_AGAIN;
        return blocking_send(proc, buf, count, type, tag, comm, mode);
    }
    const envelope env = {comm->c_sndctxt,
                          mode & ~MPIP_MODE_TRY,
                          comm->c_rank,
                          tag,
                          static_cast<int64_t>(bytes_of(count, type)),
                          0,
                          0};
    hand_over(proc, env, buf);
    return MPIP_SUCCESS;
}

void mpip_self_queuedsend(process_t* proc) {
    while (proc->p_sendhead != nullptr) start(proc, mpip_deqsend(proc));
}

int mpip_self_uirecv(process_t*, unexmsg_t* message, mpip_req_t* req) {
    finish_pair(static_cast<mpip_req_t*>(message->um_data), req);
    return MPIP_SUCCESS;
}

int mpip_self_getevents(void**, unsigned*, unsigned*, unsigned* n) {
    *n = 0;
    return MPIP_SUCCESS;
}

int mpip_self_getpolls(struct pollfd**, int* n, int* timeout) {
    *n = 0;
    *timeout = -1;
    return MPIP_SUCCESS;
}

void mpip_self_error_request(mpip_req_t* req) {
    if (req->r_state == MPIP_REQ_STARTED) --mpip_protocols[MPIP_PROTO_SELF].pt_nactv;
    end_request(req, MPIP_ERR_PROC_FAILED);
}

int mpip_self_cancelsend(mpip_req_t* req) {
    unexmsg_t* message = mpip_up.withdraw(req->r_proc, req->r_id);
    if (message == nullptr) return MPIP_SUCCESS;  // it is being received and will be done
    mpip_up.release(message);
    --mpip_protocols[MPIP_PROTO_SELF].pt_nactv;
    req->r_state |= MPIP_REQ_CANCELLED;
    mpip_req_done(req);
    return MPIP_SUCCESS;
}

void mpip_self_ufree(unexmsg_t*) {}
}
