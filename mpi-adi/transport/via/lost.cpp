// SPDX-License-Identifier: BSD-2-Clause
// The end of a connection that was not agreed upon: all descriptors are collected, all requests of the peer
// end in error, the engine hears of it once (adi-facts 12, C65). The error callback only counts; everything
// happens here, from progress.
#include "mpi-adi/transport/adi/blocking.hpp"
#include "mpi-adi/transport/adi/error.hpp"
#include "mpi-adi/transport/via/device.hpp"

namespace viaduct::via {

namespace {

void end_requests(viadev_connection_t* c) {
    process_t* proc = c->proc;
    c->shandle_head = nullptr;
    for (mpip_req_t* req : viadev.ids.of(proc)) {
        if (transfer_of(req) != nullptr) {
            forget_transfer(req);
        } else {
            viadev.ids.remove(req);
        }
        adi::end_request(req, MPIP_ERR_PROC_FAILED);
    }
    while (proc->p_sendhead != nullptr) adi::end_request(mpip_deqsend(proc), MPIP_ERR_PROC_FAILED);
}

}  // namespace

void fail_connection(viadev_connection_t* c, const char* why) {
    if (c->lost) return;
    c->lost = true;
    viadev.lost_events.fetch_add(1, std::memory_order_relaxed);  // the next pass frees its slots
    close_slots(c);
    disconnect(c);
    complete_finished();
    while (c->backlog_head != nullptr) {
        vbuf* v = c->backlog_head;
        c->backlog_head = v->next;
        if (v->transfer != nullptr) --viadev.local_waits;
        release_vbuf(v);
    }
    const bool orderly = c->goodbye_had || viadev.closing;
    c->proc->p_flags |= MPIP_PROC_TRANSPORTERR;
    if (c->rhandle != nullptr && (c->rhandle->request != nullptr || c->rhandle->abandoned))
        keep_series(c->rhandle);
    c->rhandle = nullptr;
    end_requests(c);
    if (orderly) return;
    adi::fail(MPIP_ERR_PROC_FAILED, "process %u is lost: %s", c->rank, why);
    mpip_up.peer_failed(c->proc, MPIP_ERR_PROC_FAILED);
}

void doom_connection(viadev_connection_t* c, const char* why) {
    c->doomed = why;
    viadev.lost_events.fetch_add(1, std::memory_order_relaxed);
}

void look_for_lost() {
    const uint32_t events = viadev.lost_events.load(std::memory_order_acquire);
    if (events == viadev.lost_seen) [[likely]]
        return;
    viadev.lost_seen = events;
    answer_rings();
    for (const auto& c : viadev.connections) {
        if (c != nullptr && c->lost) pass_on_place(c.get());
        if (c == nullptr || c->lost || !c->initialized) continue;
        if (c->doomed != nullptr) {
            fail_connection(c.get(), c->doomed);
            continue;
        }
        VIP_VI_STATE state;
        VIP_VI_ATTRIBUTES attributes;
        VIP_BOOLEAN send_empty, recv_empty;
        if (VipQueryVi(c->vi, &state, &attributes, &send_empty, &recv_empty) != VIP_SUCCESS) continue;
        if (state == VIP_STATE_CONNECTED && c->refused_head == nullptr && !c->refuses_receives) continue;
        // What came in before the end is still in the completion queue, or in slots: it is taken first.
        take_what_came_before_the_end(c.get());
        if (!c->lost) fail_connection(c.get(), "the connection is broken");
    }
}

}  // namespace viaduct::via
