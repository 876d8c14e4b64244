// SPDX-License-Identifier: BSD-2-Clause
// A lane's VI from its making to its end.
#include "mpi-adi/transport/adi/error.hpp"
#include "mpi-adi/transport/via/card.hpp"
#include "mpi-adi/transport/via/receive.hpp"

namespace viaduct::via {

int prepare_vi(Lane* c) {
    VIP_VI_ATTRIBUTES attributes = {c->nic.level(),  c->nic.attributes.MaxTransferSize,
                                    nullptr,  c->nic.ptag,
                                    VIP_TRUE, c->nic.rdma_read ? VIP_TRUE : VIP_FALSE};
    const bool fresh = c->vi == nullptr;
    const VIP_RETURN rc =
        fresh ? VipCreateVi(c->nic.handle, &attributes, c->nic.scq, c->nic.cq, &c->vi) : VIP_SUCCESS;
    if (rc != VIP_SUCCESS) {
        c->vi = nullptr;
        return fail_call("VipCreateVi", rc);
    }
    // C20: everything is posted before the peer can send.
    for (int i = 0; i < c->nic.credit_rules.first_receives(); ++i) {
        vbuf* v = c->nic.buffers.get();
        if (v == nullptr)
            return adi::fail(MPIP_ERR_NO_MEM, "no memory for the receives of process %u", c->peer.rank);
        vbuf_init_sendrecv(v, VBUF_BUFFER_SIZE);
        v->connection = c;
        v->owner = Owner::receive_queue;
        if (const VIP_RETURN posted = VipPostRecv(c->vi, &v->desc, v->handle); posted != VIP_SUCCESS) {
            release_vbuf(v);
            return fail_call("VipPostRecv", posted);
        }
    }
    c->prepared = true;
    return MPIP_SUCCESS;
}

void renew(Lane* c) {
    free_ring(c);
    c->ring = {};
    c->credits.start(c->nic.credit_rules, 0, 0);  // no credit, and no receive to post
    c->known_since = c->nic.cards_since;
    c->next_packet_tosend = c->next_packet_expected = 0;
    c->part_out = c->part_in = 0;
    c->expected_data = 0;
    c->failure = nullptr;
    c->refill_late = c->place_wanted = c->refuses_receives = c->in_parts = c->broken = false;
}

void connected(Lane* c) {
    // Credits begin here: nothing can be sent before.
    const Card& card = c->nic.cards[c->peer.rank];
    c->credits.start(c->nic.credit_rules, card.depth, card.reserve);
    ++c->nic.rings.queue_only;
    c->ring.counted = true;
    c->peer.protocol->lane_ready(c->peer);
}

void disconnect(Lane* c) {
    if (c->vi == nullptr) return;
    adi::ignore_result(VipDisconnect(c->vi));
    c->prepared = false;
    VIP_DESCRIPTOR* desc = nullptr;
    for (;;) {
        const VIP_RETURN rc = VipSendDone(c->vi, &desc);
        if (desc == nullptr) break;
        complete_send(vbuf_of_sent(desc), rc == VIP_SUCCESS);
    }
    for (;;) {
        adi::ignore_result(VipRecvDone(c->vi, &desc));  // the descriptor tells whether there was one
        if (desc == nullptr) break;
        release_vbuf(vbuf_of(desc));
    }
    while (c->refused_head != nullptr) {
        vbuf* v = c->refused_head;
        c->refused_head = v->next;
        complete_send(v, false);
    }
}

void start_again(Lane* c) {
    disconnect(c);
    renew(c);
}

void Lane::start_connecting() { request_connection(this); }
void Lane::request_push() { enter_flow_list(this); }

bool Lane::flushed() {
    collect_finished_sends(nic);
    return sends_outstanding == 0;
}

bool Lane::is_connected() {
    VIP_VI_STATE state;
    VIP_VI_ATTRIBUTES attributes;
    VIP_BOOLEAN send_empty, recv_empty;
    return VipQueryVi(vi, &state, &attributes, &send_empty, &recv_empty) == VIP_SUCCESS &&
           state == VIP_STATE_CONNECTED;
}

void Lane::cut() {
    nic.note_event();  // the next pass frees its ring
    close_ring(this);
    disconnect(this);
}

}  // namespace viaduct::via
