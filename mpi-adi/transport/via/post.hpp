// SPDX-License-Identifier: BSD-2-Clause
// Descriptors on their way to the NIC and back, and lists of lanes that wait for something.
#pragma once

#include "mpi-adi/transport/via/eager_ring.hpp"

namespace viaduct::via {

// Sends a packet through the ring, or the queue for a credit. False: there is no room now, the vbuf is the caller's.
[[nodiscard]] bool post_packet(Lane* c, vbuf* v);
// Through the queue, for a credit.
void post_with_credit(Lane* c, vbuf* v);
// Writes a piece of a long message into a slot that is free, without a buffer. False: not now; nothing is changed.
[[nodiscard]] bool write_r3_now(Lane* c, const void* data, size_t bytes, reqaddr_t receive, uint32_t at);
[[nodiscard]] bool has_place(Lane* c);  // the send queue takes one more
[[nodiscard]] int post_rdma(Lane* c, vbuf* v, VIP_DESCRIPTOR* desc);
[[nodiscard]] bool post_receive(Lane* c, bool reserve);
void post_missing_receives(Lane* c);
void send_noop(Lane* c);
// The first packet. False: no buffer is left for it.
[[nodiscard]] bool send_hello(Lane* c);
// The last packet: it costs no credit.
[[nodiscard]] bool send_closing(Lane* c);
void collect_finished_sends(Nic& nic);  // collects finished sends
void complete_send(vbuf* v, bool good);

inline uint32_t packets_of(size_t length) { return static_cast<uint32_t>((length + kR3Data - 1) / kR3Data); }

// Lists of lanes: with something to push (the flow list, spec/adi C54); with deferred work: receives to post, credits
// to report; with sends to collect, where these have no completion queue.
inline void enter_flow_list(Lane* c) {
    if (c->inflow) return;
    c->inflow = true;
    c->nextflow = c->nic.flow_head;
    c->nic.flow_head = c;
}

inline void defer_work(Lane* c) {
    if (c->in_deferred) return;
    c->in_deferred = true;
    c->next_deferred = c->nic.deferred_head;
    c->nic.deferred_head = c;
}

inline void watch_sends(Lane* c) {
    if (c->in_sending) return;
    c->in_sending = true;
    c->next_sending = c->nic.sending_head;
    c->nic.sending_head = c;
}

// A descriptor of the vbuf into the send queue.
inline void hand_to_nic(Lane* c, vbuf* v, VIP_DESCRIPTOR* desc) {
    v->connection = c;
    v->owner = Owner::send_queue;
    ++c->sends_outstanding;
    ++c->nic.sends_outstanding;
    if (c->nic.scq == nullptr) watch_sends(c);
    if (VipPostSend(c->vi, desc, v->handle) == VIP_SUCCESS) [[likely]]
        return;
    // It is completed when the connection ends, which the next pass finds.
    v->next = c->refused_head;
    c->refused_head = v;
    c->nic.note_event();
}

inline vbuf* get_vbuf_or_defer(Lane* c) {
    vbuf* v = c->nic.buffers.get();
    if (v == nullptr) defer_work(c);  // pushed again when there may be one
    return v;
}

}  // namespace viaduct::via
