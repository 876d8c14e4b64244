// SPDX-License-Identifier: BSD-2-Clause
// Long messages (adi-facts 6.2, 6.3): request, reply when the receive is there, then the data by packets
// (R3), by remote write (RPUT) or by remote read (RGET); what a side cannot register falls back to packets.
// Where processors do the NIC's copying, both sides copy at once (both): the receiver reads the beginning,
// the sender writes the rest, and each tells the other when its part is done. The design marks a long send
// done when its request has left; here it is done when its data has.
#include <algorithm>

#include "mpi-adi/protocol/common/blocking.hpp"
#include "mpi-adi/protocol/common/counters.hpp"
#include "mpi-adi/protocol/via/device.hpp"
#include "mpi-adi/protocol/via/registration.hpp"

namespace viaduct::via {

namespace {

LongTransfer* free_transfers = nullptr;

LongTransfer* new_transfer(mpip_req_t* req, viadev_connection_t* c) {
    LongTransfer* t = free_transfers;
    if (t != nullptr) {
        free_transfers = t->next;
    } else {
        t = new LongTransfer;
    }
    *t = {};
    t->request = req;
    t->connection = c;
    req->r_data = t;
    viadev.ids.add(req);
    return t;
}

void append(viadev_connection_t* c, LongTransfer* t) {
    t->next = nullptr;
    (c->shandle_head == nullptr ? c->shandle_head : c->shandle_tail->next) = t;
    c->shandle_tail = t;
}

uint32_t packets_of(size_t length) { return static_cast<uint32_t>((length + kR3Data - 1) / kR3Data); }

bool is_sender(const LongTransfer* t) { return (t->request->r_flags & MPIP_REQ_SEND) != 0; }

void finish(LongTransfer* t) {
    mpip_req_t* req = t->request;
    const bool sender = is_sender(t);
    const size_t message = t->message;
    forget_transfer(req);
    if (sender) {
        req->r_length = static_cast<int64_t>(req->r_bytes);
    } else {
        mpip_req_received(req, message);
    }
    mpip_req_done(req);
}

// Where the sender's part begins when both sides copy: the receiver starts first, by the time of a packet,
// and has the sender's finish to wait for. On the edge of a page of the receiver's: each page that both copy
// to costs one look-up more.
constexpr size_t kHeadStart = 8 * 1024;
size_t first_part(const void* buffer, size_t length) {
    constexpr size_t kPage = 4096;
    const size_t into_page = reinterpret_cast<uintptr_t>(buffer) % kPage;
    const size_t cut = (into_page + (length + kHeadStart) / 2 + kPage / 2) & ~(kPage - 1);
    return std::min(length, std::max(cut, into_page) - into_page);
}

// One of the two parts is done.
void finish_part(LongTransfer* t) {
    if (t->own_part_done && t->their_part_done) finish(t);
}

void send_finish(viadev_connection_t* c, PacketType type, reqaddr_t request, LongTransfer* t) {
    vbuf* v = get_vbuf();
    if (v == nullptr) return fail_connection(c, "no buffer is left for a finish packet");
    Finish* p = packet_of<Finish>(v);
    p->header.type = type;
    p->header.flags = 0;
    p->request = request;
    vbuf_init_sendrecv(v, sizeof(Finish));
    v->transfer = t;
    viadev_post_send(c, v);
}

// One r3 packet; false when there is no buffer.
bool push_packet(viadev_connection_t* c, LongTransfer* t) {
    vbuf* v = get_vbuf();
    if (v == nullptr) return false;
    const size_t now = std::min(kR3Data, t->end - t->offset);
    R3Next* p = packet_of<R3Next>(v);
    p->header.type = PacketType::r3_next;
    p->header.flags = 0;
    p->rreq = t->peer_request;
    p->packet_no = t->packet_no++;
    mpip_req_collect(t->request, t->offset, v->buffer + sizeof(R3Next), now);
    vbuf_init_sendrecv(v, sizeof(R3Next) + now);
    t->offset += now;
    viadev_post_send(c, v);
    return true;
}

// One remote write or read of at most what the NIC takes; false when there is no buffer or no place in the
// queue.
bool push_piece(viadev_connection_t* c, LongTransfer* t) {
    vbuf* v = get_vbuf();
    if (v == nullptr) return false;
    const size_t now = std::min<size_t>(viadev.maxtransfersize, t->end - t->offset);
    const bool put = is_sender(t);
    vbuf_init_rdma(v, put ? VIP_CONTROL_OP_RDMAWRITE : VIP_CONTROL_OP_RDMAREAD, t->remote_address + t->offset,
                   t->remote_handle, static_cast<char*>(t->request->r_buf) + t->offset,
                   t->registration->handle, static_cast<uint32_t>(now));
    const bool last = t->offset + now == t->end;
    if (!put && last) v->transfer = t;
    if (viadev_post_rdma(c, v) != MPIP_SUCCESS) {
        release_vbuf(v);
        return false;
    }
    t->offset += now;
    if (last) {
        ++viadev.local_waits;
        // The VI keeps order: the finish arrives after all that was written (H5).
        if (put) send_finish(c, PacketType::rput_finish, t->peer_request, t);
    }
    return true;
}

bool may_push(const viadev_connection_t* c, const LongTransfer* t) {
    return t->protocol != Rendezvous::r3 || (c->backlog_head == nullptr && c->credits.may_push());
}

}  // namespace

LongTransfer* transfer_of(mpip_req_t* req) { return static_cast<LongTransfer*>(req->r_data); }

void forget_transfer(mpip_req_t* req) {
    LongTransfer* t = transfer_of(req);
    viadev.ids.remove(req);
    req->r_data = nullptr;
    if (t == nullptr) return;
    if (t->registration != nullptr) release_buffer(t->registration);
    if (t->counted) t->connection->credits.expect(-static_cast<int>(packets_of(t->length) - t->packet_no));
    t->next = free_transfers;
    free_transfers = t;
}

int send_req_long_data(viadev_connection_t* c, mpip_req_t* req) {
    vbuf* v = get_vbuf();
    if (v == nullptr) return MPIP_AGAIN;
    LongTransfer* t = new_transfer(req, c);
    t->length = req->r_bytes;
    t->protocol =
        req->r_bytes > viadev.r3_limit && mpip_req_is_contig(req) ? viadev.rendezvous : Rendezvous::r3;
    uint64_t address = 0;
    if (t->protocol == Rendezvous::rget || t->protocol == Rendezvous::both) {
        t->registration = hold_buffer(req->r_buf, req->r_bytes);
        if (t->registration != nullptr) address = reinterpret_cast<uint64_t>(req->r_buf);
    }

    LongRequest* p = packet_of<LongRequest>(v);
    p->header.type = PacketType::long_request;
    p->header.flags = 0;
    p->envelope.context = req->r_ctxt;
    p->envelope.tag = static_cast<uint32_t>(req->r_tag);
    p->envelope.src_lrank = static_cast<uint32_t>(req->r_rank);
    p->envelope.packet_no = 0;
    p->envelope.mode = static_cast<uint32_t>(req->r_mode | MPIP_MODE_RTS);
    p->envelope.data_length = req->r_bytes;
    p->envelope.sreq = req->r_id;
    p->envelope.rreq = 0;
    p->buffer_address = address;
    p->memhandle = t->registration != nullptr ? t->registration->handle : 0;
    p->descriptor_required = packets_of(req->r_bytes);
    p->protocol = static_cast<uint32_t>(t->protocol);
    vbuf_init_sendrecv(v, sizeof(LongRequest));
    req->r_state = MPIP_REQ_STARTED;
    ++adi::counters[MPIP_PROTO_VIA].mc_long;
    viadev_post_send(c, v);
    // Registering takes its time, and there is some until the answer is here (N38).
    if (t->protocol == Rendezvous::rput) t->registration = hold_buffer(req->r_buf, req->r_bytes);
    return MPIP_SUCCESS;
}

void start_long_receive(const LongStart& start, mpip_req_t* req) {
    viadev_connection_t* c = start.connection;
    req->r_state |= MPIP_REQ_STARTED;
    req->r_proc = c->proc;
    LongTransfer* t = new_transfer(req, c);
    t->message = start.length;
    t->length = std::min(start.length, req->r_bytes);
    t->peer_request = start.sreq;
    t->end = t->length;
    const bool readable = start.handle != 0 && viadev.rdma_read;
    if (t->length > viadev.r3_limit && mpip_req_is_contig(req) && start.wanted != Rendezvous::r3 &&
        (start.wanted == Rendezvous::rput || readable)) {
        t->registration = hold_buffer(req->r_buf, t->length);
        if (t->registration != nullptr) t->protocol = start.wanted;
    }
    if (t->protocol == Rendezvous::both && t->length < viadev.both_from) t->protocol = Rendezvous::rget;
    if (t->protocol == Rendezvous::rget || t->protocol == Rendezvous::both) {
        ++adi::counters[MPIP_PROTO_VIA].mc_rget;
        t->remote_address = start.address;
        t->remote_handle = start.handle;
        if (t->protocol == Rendezvous::both) {
            t->end = first_part(req->r_buf, t->length);
            send_reply_for_long_data(t, start);
        }
        append(c, t);
        want_flow(c);
        return;
    }
    if (t->protocol == Rendezvous::r3 && t->length != 0) {
        t->counted = true;
        c->credits.expect(static_cast<int>(packets_of(t->length)));
        post_missing_receives(c);  // the reply already tells of them (F12, F14)
    }
    send_reply_for_long_data(t, start);
    if (t->length == 0) finish(t);
}

void send_reply_for_long_data(LongTransfer* t, const LongStart& start) {
    viadev_connection_t* c = t->connection;
    vbuf* v = get_vbuf();
    if (v == nullptr) return fail_connection(c, "no buffer is left for a reply");
    LongReply* p = packet_of<LongReply>(v);
    p->header.type = PacketType::long_reply;
    p->header.flags = 0;
    p->rreq = t->request->r_id;
    p->sreq = start.sreq;
    p->context_id = start.context;
    p->src_lrank = start.src_lrank;
    p->mode = MPIP_MODE_RTS;
    p->protocol = static_cast<uint32_t>(t->protocol);
    p->buffer_address = t->registration != nullptr ? reinterpret_cast<uint64_t>(t->request->r_buf) : 0;
    p->length = t->length;
    p->memhandle = t->registration != nullptr ? t->registration->handle : 0;
    p->first = t->end;
    vbuf_init_sendrecv(v, sizeof(LongReply));
    viadev_post_send(c, v);
}

void MPID_VIA_long_send(viadev_connection_t* c) {
    while (c->shandle_head != nullptr && !c->lost) {
        LongTransfer* t = c->shandle_head;
        while (t->offset < t->end) {
            if (!may_push(c, t)) return;
            const bool pushed = t->protocol == Rendezvous::r3 ? push_packet(c, t) : push_piece(c, t);
            if (!pushed) return want_chores(c);
        }
        c->shandle_head = t->next;
        if (t->protocol == Rendezvous::r3) {
            finish(t);  // all of it is in our buffers
            continue;
        }
        // A copy by this processor takes microseconds: what has come in meanwhile goes first.
        viadev.moved = true;
        if (c->shandle_head != nullptr) want_flow(c);
        return;
    }
}

// The last piece is complete: an rput message has left this side, an rget message is here. Sends are
// collected in the middle of other things, so the request is completed later, from the top (G8).
void long_transfer_sent(LongTransfer* t) {
    t->next = viadev.finished;
    viadev.finished = t;
}

void complete_finished() {
    while (viadev.finished != nullptr) {
        LongTransfer* t = viadev.finished;
        viadev.finished = t->next;
        if (!is_sender(t)) send_finish(t->connection, PacketType::rget_finish, t->peer_request, nullptr);
        if (t->protocol == Rendezvous::both) {
            t->own_part_done = true;
            finish_part(t);
        } else {
            finish(t);
        }
    }
}

bool incoming_long_request(viadev_connection_t* c, const LongRequest& packet) {
    LongStart start = {};
    start.kind = Held::Kind::long_start;
    start.connection = c;
    start.length = packet.envelope.data_length;
    start.sreq = packet.envelope.sreq;
    start.address = packet.buffer_address;
    start.handle = packet.memhandle;
    start.descriptors = packet.descriptor_required;
    start.src_lrank = packet.envelope.src_lrank;
    start.context = packet.envelope.context;
    start.wanted = static_cast<Rendezvous>(static_cast<uint32_t>(packet.protocol));
    if (start.length > INT64_MAX || start.wanted > Rendezvous::both) return false;

    const envelope env = {start.context,
                          static_cast<int>(packet.envelope.mode & 0xff) | MPIP_MODE_RTS,
                          static_cast<int>(start.src_lrank),
                          static_cast<int>(static_cast<uint32_t>(packet.envelope.tag)),
                          static_cast<int64_t>(start.length),
                          start.sreq,
                          0};
    LongStart* kept = new LongStart(start);
    mpip_req_t* match = nullptr;
    if (mpip_up.arrived(c->proc, &env, nullptr, 0, kept, &match) == MPIP_IN_MATCHED) {
        delete kept;
        start_long_receive(start, match);
    } else {
        ++adi::counters[MPIP_PROTO_VIA].mc_unexpected;
    }
    return true;
}

// The receiver is reading the beginning meanwhile. Its part may be all there is.
static bool send_second_part(viadev_connection_t* c, LongTransfer* t) {
    if (t->offset == t->end) {
        t->own_part_done = true;
        send_finish(c, PacketType::rput_finish, t->peer_request, nullptr);
    } else {
        append(c, t);
        want_flow(c);
    }
    return true;
}

bool incoming_long_reply(viadev_connection_t* c, const LongReply& packet) {
    mpip_req_t* req = viadev.ids.find(packet.sreq);
    if (req == nullptr || req->r_proc != c->proc || (req->r_flags & MPIP_REQ_SEND) == 0) return false;
    LongTransfer* t = transfer_of(req);
    const uint64_t length = packet.length;
    const uint32_t chosen = packet.protocol;
    const bool both = chosen == static_cast<uint32_t>(Rendezvous::both);
    if (t->replied || length > req->r_bytes) return false;
    // What was not offered cannot be chosen; a remote read is begun without a reply.
    if (both ? t->protocol != Rendezvous::both || t->registration == nullptr || packet.memhandle == 0 ||
                   packet.first > length || length == 0
             : chosen > static_cast<uint32_t>(Rendezvous::rput))
        return false;
    t->replied = true;
    t->length = t->end = length;
    t->peer_request = packet.rreq;
    t->remote_address = packet.buffer_address;
    t->remote_handle = packet.memhandle;
    if (both) {
        t->offset = packet.first;
        return send_second_part(c, t);
    }
    t->protocol = Rendezvous::r3;
    if (chosen == static_cast<uint32_t>(Rendezvous::rput) && packet.memhandle != 0 &&
        mpip_req_is_contig(req)) {
        if (t->registration == nullptr) t->registration = hold_buffer(req->r_buf, t->length);
        if (t->registration != nullptr) t->protocol = Rendezvous::rput;
    } else if (t->registration != nullptr) {
        release_buffer(t->registration);  // in vain: it goes in packets (N39)
        t->registration = nullptr;
    }
    if (t->length == 0) {
        finish(t);
        return true;
    }
    ++(t->protocol == Rendezvous::rput ? adi::counters[MPIP_PROTO_VIA].mc_rput
                                       : adi::counters[MPIP_PROTO_VIA].mc_r3);
    append(c, t);
    want_flow(c);
    return true;
}

namespace {

// The receive a packet names, if it is one of this connection's.
LongTransfer* receive_named(viadev_connection_t* c, reqaddr_t name) {
    mpip_req_t* req = viadev.ids.find(name);
    if (req == nullptr || req->r_proc != c->proc || (req->r_flags & MPIP_REQ_SEND) != 0) return nullptr;
    return transfer_of(req);
}

}  // namespace

bool incoming_r3(viadev_connection_t* c, const R3Next& packet, size_t length) {
    LongTransfer* t = receive_named(c, packet.rreq);
    const size_t bytes = length - sizeof(R3Next);
    if (t == nullptr || t->protocol == Rendezvous::rget || t->protocol == Rendezvous::both ||
        packet.packet_no != t->packet_no)
        return false;
    if (bytes == 0 || bytes > t->length - t->offset) return false;
    mpip_req_deliver(t->request, t->offset, &packet + 1, bytes);
    t->offset += bytes;
    ++t->packet_no;
    if (t->counted) c->credits.expect(-1);
    if (t->offset == t->length) finish(t);
    return true;
}

bool incoming_rput_finish(viadev_connection_t* c, const Finish& packet) {
    LongTransfer* t = receive_named(c, packet.request);
    if (t == nullptr) return false;
    if (t->protocol == Rendezvous::both) {
        if (t->their_part_done) return false;
        t->their_part_done = true;
        finish_part(t);
        return true;
    }
    if (t->protocol != Rendezvous::rput || t->offset != 0) return false;
    finish(t);
    return true;
}

bool incoming_rget_finish(viadev_connection_t* c, const Finish& packet) {
    mpip_req_t* req = viadev.ids.find(packet.request);
    if (req == nullptr || req->r_proc != c->proc || (req->r_flags & MPIP_REQ_SEND) == 0) return false;
    LongTransfer* t = transfer_of(req);
    if (t->registration == nullptr) return false;
    if (t->replied && t->protocol == Rendezvous::both) {
        if (t->their_part_done) return false;
        t->their_part_done = true;
        finish_part(t);
        return true;
    }
    // Both offered and the receiver read all of it, or that was offered alone.
    if (t->replied || (t->protocol != Rendezvous::rget && t->protocol != Rendezvous::both)) return false;
    finish(t);
    return true;
}

}  // namespace viaduct::via
