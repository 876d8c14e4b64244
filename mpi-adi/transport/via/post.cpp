// SPDX-License-Identifier: BSD-2-Clause
// Descriptors on their way to the NIC and back: headers are stamped when a packet is really posted (spec/adi
// F2), packets without a credit or a slot wait in order (spec/adi F4), finished sends are collected in batches.
#include <algorithm>
#include <cstring>

#include "mpi-adi/transport/adi/counters.hpp"
#include "mpi-adi/transport/via/post.hpp"

namespace viaduct::via {

namespace {

void fill_header(Lane* c, Header* h, uint16_t sequence) {
    h->sequence = sequence;
    h->source = c->nic.me;
    h->credit = c->credits.take_local();
    h->view = c->credits.view();
    h->noops = c->credits.free_had();
}

// A header in a slot carries no credits: packets without a sequence number, which do, could overtake it.
inline void fill_ring_header(Lane* c, Header* h) {
    h->sequence = c->next_packet_tosend++;
    h->source = c->nic.me;
    h->credit = 0;
    h->view = h->noops = 0;
}

// Fills the end of a slot. Returns the address of the slot's end in the peer's area.
uint64_t end_packet(Lane* c, SlotEnd* end, size_t length) {
    const SlotKind kind = slot_kind_for(length);
    SlotCounts* counts = c->ring.counts;
    const uint32_t position = counts[kind].next();
    counts[kind].sent();
    set_next_line(c);
    for (unsigned each = 0; each < kSlotKinds; ++each) end->taken[each] = counts[each].report();
    end->length = static_cast<uint16_t>(length);
    end->head = 0;
    end->position = position + 1;
    ++adi::counters[MPIP_PROTO_VIA].mc_packets;
    return c->ring.remote + slot_end(kind, position);
}

// The packet in a vbuf, as it is.
void post_to_ring(Lane* c, vbuf* v) {
    const size_t length = v->desc.CS.Length;
    const size_t whole = slot_bytes_for(length);
    fill_ring_header(c, packet_of<Header>(v));
    const uint64_t end =
        end_packet(c, reinterpret_cast<SlotEnd*>(v->buffer + whole - sizeof(SlotEnd)), length);
    const size_t before = whole - kSlotLine;
    const VIPX_WRITE write = {end - whole, c->ring.remote_handle, v->buffer, before, v->buffer + before, kSlotLine};
    if (VipxWriteNow(c->vi, &write) == VIP_SUCCESS) [[likely]] {
        release_vbuf(v);
    } else {
        vbuf_init_rdma(v, VIP_CONTROL_OP_RDMAWRITE, end - whole, c->ring.remote_handle, v->buffer, v->handle,
                       static_cast<uint32_t>(whole));
        hand_to_nic(c, v, &v->desc);
    }
    wake_receiver(c);
}

bool send_free(Lane* c, PacketType type) {
    vbuf* v = has_place(c) ? c->nic.buffers.get() : nullptr;
    if (v == nullptr) {
        defer_work(c);
        return false;
    }
    Header* h = packet_of<Header>(v);
    h->type = type;
    h->flags = 0;
    vbuf_init_sendrecv(v, sizeof(Header));
    c->credits.sent_free();
    fill_header(c, h, 0);
    hand_to_nic(c, v, &v->desc);
    return true;
}

}  // namespace

void post_with_credit(Lane* c, vbuf* v) {
    c->credits.spend();
    fill_header(c, packet_of<Header>(v), c->next_packet_tosend++);
    ++adi::counters[MPIP_PROTO_VIA].mc_packets;
    hand_to_nic(c, v, &v->desc);
}

bool post_packet(Lane* c, vbuf* v) {
    if (c->peer.lost() || !has_place(c)) return false;
    if (uses_ring(c) && v->desc.CS.Length <= kMostInSlot && has_free_slot(c, v->desc.CS.Length)) {
        post_to_ring(c, v);
        return true;
    }
    if (!c->credits.can_send()) return false;
    post_with_credit(c, v);
    return true;
}

// No finished sends are collected here: the caller may be in the middle of a transfer.
void send_wake(Lane* c) {
    const bool place = c->sends_outstanding < c->nic.send_depth && !c->nic.buffers.empty();
    vbuf* v = place && c->credits.can_send() ? c->nic.buffers.get() : nullptr;
    if (v == nullptr) return;
    packet_of<Header>(v)->type = PacketType::wake;
    packet_of<Header>(v)->flags = 0;
    vbuf_init_sendrecv(v, sizeof(Header));
    post_with_credit(c, v);
}

bool has_place(Lane* c) {
    if (c->sends_outstanding < c->nic.collect_from) [[likely]]
        return true;
    collect_finished_sends(c->nic);  // some have finished, it may be
    if (c->sends_outstanding < c->nic.send_depth) return true;
    c->place_wanted = true;
    return false;
}

int post_rdma(Lane* c, vbuf* v, VIP_DESCRIPTOR* desc) {
    if (!has_place(c)) return MPIP_AGAIN;
    hand_to_nic(c, v, desc);
    return MPIP_SUCCESS;
}

bool post_receive(Lane* c, bool reserve) {
    vbuf* v = c->nic.buffers.get();
    if (v == nullptr) return false;
    vbuf_init_sendrecv(v, VBUF_BUFFER_SIZE);
    v->connection = c;
    v->owner = Owner::receive_queue;
    if (VipPostRecv(c->vi, &v->desc, v->handle) != VIP_SUCCESS) {
        release_vbuf(v);
        c->refuses_receives = true;
        c->nic.note_event();
        return false;
    }
    c->credits.reposted(reserve);
    return true;
}

void post_missing_receives(Lane* c) {
    while (c->credits.missing_reserve() > 0) {
        if (!post_receive(c, true)) return defer_work(c);
    }
    while (c->credits.missing() > 0) {
        if (!post_receive(c, false)) return defer_work(c);
    }
}

void send_noop(Lane* c) {
    if (c->peer.lost() || c->peer.closing_sent || !c->credits.may_send_noop()) return;
    ++adi::counters[MPIP_PROTO_VIA].mc_noops;
    send_free(c, PacketType::noop);
}

bool send_hello(Lane* c) {
    vbuf* v = c->nic.buffers.get();
    if (v == nullptr) return false;
    Header* h = packet_of<Header>(v);
    *h = {};
    h->type = PacketType::hello;
    h->source = c->nic.me;
    vbuf_init_sendrecv(v, sizeof(Header));
    hand_to_nic(c, v, &v->desc);
    return true;
}

bool send_closing(Lane* c) { return !c->peer.lost() && send_free(c, PacketType::closing); }

void complete_send(vbuf* v, bool good) {
    Lane* c = v->connection;
    --c->sends_outstanding;
    --c->nic.sends_outstanding;
    protocol::Transfer* transfer = v->transfer;
    if (transfer != nullptr && good && transfer->copied && !transfer->sends())
        std::memcpy(transfer->request->r_buf, v->buffer, transfer->length);
    release_vbuf(v);
    if (transfer != nullptr) --c->nic.local_waits;
    if (c->place_wanted) {
        c->place_wanted = false;
        enter_flow_list(c);
    }
    if (transfer != nullptr && good) c->peer.protocol->transfer_done(*transfer);
}

static void take_back(vbuf* v, VIP_RETURN rc) {
    Lane* c = v->connection;
    complete_send(v, rc == VIP_SUCCESS);
    if (rc != VIP_SUCCESS && !c->peer.lost()) c->nic.note_event();
}

void collect_finished_sends(Nic& nic) {
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN receive;
    VIP_DESCRIPTOR* desc = nullptr;
    if (nic.scq != nullptr) {
        while (VipCQDone(nic.scq, &vi, &receive) == VIP_SUCCESS) {
            const VIP_RETURN rc = VipSendDone(vi, &desc);
            if (desc != nullptr)
                take_back(vbuf_of_sent(desc), rc);  // else of a queue that was collected directly
        }
        return;
    }
    Lane* list = nic.sending_head;
    nic.sending_head = nullptr;
    while (list != nullptr) {
        Lane* c = list;
        list = c->next_sending;
        c->in_sending = false;
        while (c->sends_outstanding != 0) {
            const VIP_RETURN rc = VipSendDone(c->vi, &desc);
            if (desc == nullptr) break;
            take_back(vbuf_of_sent(desc), rc);
        }
        if (c->sends_outstanding != 0) watch_sends(c);
    }
}

}  // namespace viaduct::via
