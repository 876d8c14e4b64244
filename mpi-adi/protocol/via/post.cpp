// SPDX-License-Identifier: BSD-2-Clause
// Descriptors on their way to the NIC and back: headers are stamped when a packet is really posted (F2),
// packets without credit wait in order (F4), finished sends are collected in batches.
#include <algorithm>

#include "mpi-adi/protocol/common/counters.hpp"
#include "mpi-adi/protocol/via/device.hpp"

namespace viaduct::via {

namespace {

void fill_header(viadev_connection_t* c, Header* h, uint16_t sequence) {
    h->sequence = sequence;
    h->credit = c->credits.take_local();
    h->view = c->credits.view();
    h->noops = c->credits.free_had();
    h->source = static_cast<uint32_t>(viadev.me);
    h->flags = static_cast<uint8_t>((h->flags & ~kFlagEnvelopesOnly) |
                                    (viadev.envelopes_only ? kFlagEnvelopesOnly : 0));
}

inline void hand_to_nic(viadev_connection_t* c, vbuf* v, VIP_DESCRIPTOR* desc) {
    v->connection = c;
    v->owner = Owner::send_queue;
    ++c->sends_outstanding;
    ++viadev.sends_outstanding;
    VipPostSend(c->vi, desc, v->handle);
}

void post_with_credit(viadev_connection_t* c, vbuf* v) {
    c->credits.spend();
    fill_header(c, packet_of<Header>(v), c->next_packet_tosend++);
    ++adi::counters[MPIP_PROTO_VIA].mc_packets;
    hand_to_nic(c, v, &v->desc);
}

// Whether the send queue takes one more; collects finished ones first when it looks full.
bool has_slot(viadev_connection_t* c) {
    if (c->sends_outstanding < viadev.send_depth) [[likely]]
        return true;
    viadev_process_send();
    if (c->sends_outstanding < viadev.send_depth) return true;
    c->slots_wanted = true;
    return false;
}

void send_free(viadev_connection_t* c, PacketType type) {
    vbuf* v = get_vbuf();
    if (v == nullptr || !has_slot(c)) {
        if (v != nullptr) release_vbuf(v);
        want_chores(c);
        return;
    }
    Header* h = packet_of<Header>(v);
    h->type = type;
    h->flags = 0;
    vbuf_init_sendrecv(v, sizeof(Header));
    c->credits.sent_free();
    fill_header(c, h, 0);
    hand_to_nic(c, v, &v->desc);
    if (type == PacketType::goodbye) c->goodbye_sent = true;
}

}  // namespace

void viadev_post_send(viadev_connection_t* c, vbuf* v) {
    if (c->lost) {
        release_vbuf(v);
        return;
    }
    if (c->backlog_head == nullptr && c->credits.can_send() && has_slot(c)) [[likely]] {
        post_with_credit(c, v);
        return;
    }
    ++adi::counters[MPIP_PROTO_VIA].mc_backlogged;
    v->owner = Owner::backlog;
    v->next = nullptr;
    (c->backlog_head == nullptr ? c->backlog_head : c->backlog_tail->next) = v;
    c->backlog_tail = v;
}

void push_backlog(viadev_connection_t* c) {
    while (c->backlog_head != nullptr && c->credits.can_send() && has_slot(c)) {
        vbuf* v = c->backlog_head;
        c->backlog_head = v->next;
        post_with_credit(c, v);
    }
}

int viadev_post_rdma(viadev_connection_t* c, vbuf* v, VIP_DESCRIPTOR* desc) {
    if (!has_slot(c)) return MPIP_AGAIN;
    hand_to_nic(c, v, desc);
    return MPIP_SUCCESS;
}

bool post_receive(viadev_connection_t* c, bool reserve) {
    vbuf* v = get_vbuf();
    if (v == nullptr) return false;
    vbuf_init_sendrecv(v, VBUF_BUFFER_SIZE);
    v->connection = c;
    v->owner = Owner::receive_queue;
    VipPostRecv(c->vi, &v->desc, v->handle);
    c->credits.reposted(reserve);
    return true;
}

void post_missing_receives(viadev_connection_t* c) {
    while (c->credits.missing_reserve() > 0) {
        if (!post_receive(c, true)) return want_chores(c);
    }
    while (c->credits.missing() > 0) {
        if (!post_receive(c, false)) return want_chores(c);
    }
}

void send_noop(viadev_connection_t* c) {
    if (c->lost || c->goodbye_sent || !c->credits.may_send_noop()) return;
    ++adi::counters[MPIP_PROTO_VIA].mc_noops;
    send_free(c, PacketType::noop);
}

void send_goodbye(viadev_connection_t* c) {
    if (!c->lost && !c->goodbye_sent) send_free(c, PacketType::goodbye);
}

void complete_send(vbuf* v, bool good) {
    viadev_connection_t* c = v->connection;
    --c->sends_outstanding;
    --viadev.sends_outstanding;
    LongTransfer* transfer = v->transfer;
    release_vbuf(v);
    if (transfer != nullptr) --viadev.local_waits;
    if (c->slots_wanted) {
        c->slots_wanted = false;
        want_flow(c);
    }
    if (transfer != nullptr && good) long_transfer_sent(transfer);
}

void viadev_process_send() {
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN receive;
    while (VipCQDone(viadev.scq, &vi, &receive) == VIP_SUCCESS) {
        VIP_DESCRIPTOR* desc = nullptr;
        const VIP_RETURN rc = VipSendDone(vi, &desc);
        if (desc == nullptr) continue;  // of a queue that was collected directly
        vbuf* v = vbuf_of_sent(desc);
        viadev_connection_t* c = v->connection;
        complete_send(v, rc == VIP_SUCCESS);
        if (rc != VIP_SUCCESS && !c->lost) viadev.lost_events.fetch_add(1, std::memory_order_relaxed);
    }
}

}  // namespace viaduct::via
