// SPDX-License-Identifier: BSD-2-Clause
// How long messages are moved once that is agreed: by packets (R3), by remote write (RPUT), by remote read
// (RGET), or by both sides at once; piece by piece where a buffer has gaps. A finish packet tells the side
// that has not moved. The design marks a long send done when its request has left; here it is done when its
// data has.
#include <algorithm>
#include <chrono>

#include "mpi-adi/transport/adi/blocking.hpp"
#include "mpi-adi/transport/adi/counters.hpp"
#include "mpi-adi/transport/via/device.hpp"

namespace viaduct::via {

namespace {

void append(viadev_connection_t* c, LongTransfer* t) {
    t->next = nullptr;
    (c->shandle_head == nullptr ? c->shandle_head : c->shandle_tail->next) = t;
    c->shandle_tail = t;
}

// One of the two parts is done.
void finish_part(LongTransfer* t) {
    if (t->own_part_done && t->their_part_done) finish_transfer(t);
}

void send_finish(viadev_connection_t* c, PacketType type, reqaddr_t request, LongTransfer* t) {
    vbuf* v = get_vbuf();
    if (v == nullptr) {
        if (t != nullptr) --viadev.local_waits;
        return doom_connection(c, "no buffer is left for a finish packet");
    }
    Finish* p = packet_of<Finish>(v);
    p->header.type = type;
    p->header.flags = 0;
    p->request = request;
    vbuf_init_sendrecv(v, sizeof(Finish));
    v->transfer = t;
    viadev_post_send(c, v);
}

// The data of a message is cut into equal pieces.
uint32_t slot_piece(size_t length) {
    constexpr size_t kMost = (kMostWritten - sizeof(R3Next)) & ~(kSlotLine - 1);
    const size_t pieces = std::max<size_t>((length + kMost - 1) / kMost, 2);
    return static_cast<uint32_t>(((length + pieces - 1) / pieces + kSlotLine - 1) & ~(kSlotLine - 1));
}

// How much of it the next r3 packet takes.
size_t next_piece(LongTransfer* t, bool by_slot) {
    if (t->piece == 0) t->piece = slot_piece(t->end);
    return std::min<size_t>(by_slot ? t->piece : kR3Data, t->end - t->offset);
}

// One r3 packet, into a slot out of the user's buffer where that can be; false when there is no buffer for another one.
bool push_packet(viadev_connection_t* c, LongTransfer* t, bool by_slot) {
    size_t now = next_piece(t, by_slot);
    if (by_slot && mpip_req_is_contig(t->request) &&
        write_r3_now(c, static_cast<const char*>(t->request->r_buf) + t->offset, now, t->peer_request, t->packet_no)) {
        ++t->packet_no;
        t->offset += now;
        return true;
    }
    vbuf* v = get_vbuf();
    if (v == nullptr) return false;
    now = std::min(now, kMostInSlot - sizeof(R3Next));
    R3Next* p = packet_of<R3Next>(v);
    p->header.type = PacketType::r3_next;
    p->header.flags = 0;
    p->rreq = t->peer_request;
    p->packet_no = t->packet_no++;
    mpip_req_collect(t->request, t->offset, v->buffer + sizeof(R3Next), now);
    t->offset += now;
    vbuf_init_sendrecv(v, sizeof(R3Next) + now);
    viadev_post_send(c, v);
    return true;
}

// One remote write or read of at most what the NIC takes; false when there is no buffer or no place in the
// queue.
bool push_piece(viadev_connection_t* c, LongTransfer* t) {
    vbuf* v = get_vbuf();
    if (v == nullptr) return false;
    size_t now = std::min<size_t>(viadev.maxtransfersize, t->end - t->offset);
    const bool put = is_sender(t);
    const unsigned control = put ? VIP_CONTROL_OP_RDMAWRITE : VIP_CONTROL_OP_RDMAREAD;
    const bool gaps = t->own != nullptr;
    if (gaps) {
        now = vbuf_init_pieces(v, control, *t->own, *t->theirs, now, viadev.maxsegments);
    } else {
        vbuf_init_rdma(v, control, t->remote_address + t->offset, t->remote_handle,
                       static_cast<char*>(t->request->r_buf) + t->offset, t->registration->handle,
                       static_cast<uint32_t>(now));
    }
    const bool last = t->offset + now == t->end;
    if (!put && last) v->transfer = t;
    if (viadev_post_rdma(c, v, gaps ? long_descriptor_of(v) : &v->desc) != MPIP_SUCCESS) {
        release_vbuf(v);
        return false;
    }
    t->offset += now;
    if (gaps) {
        t->own->advance(now);
        t->theirs->advance(now);
    }
    if (last) {
        ++viadev.local_waits;
        // The VI keeps order: the finish arrives after all that was written (H5).
        if (put) send_finish(c, PacketType::rput_finish, t->peer_request, t);
    }
    return true;
}

// The remote read of a list of pieces; false as above.
bool fetch_list(viadev_connection_t* c, LongTransfer* t) {
    vbuf* v = get_vbuf();
    if (v == nullptr) return false;
    VIP_MEM_HANDLE handle = 0;
    WirePiece* to = t->theirs->room(&handle);
    vbuf_init_rdma(v, VIP_CONTROL_OP_RDMAREAD, t->remote_address, t->remote_handle, to, handle,
                   static_cast<uint32_t>(t->theirs->room_bytes()));
    v->transfer = t;
    if (viadev_post_rdma(c, v, &v->desc) != MPIP_SUCCESS) {
        release_vbuf(v);
        return false;
    }
    ++viadev.local_waits;
    ++adi::counters[MPIP_PROTO_VIA].mc_lists;
    return true;
}

void list_is_here(LongTransfer* t) {
    t->fetching = false;
    if (t->theirs->take_fetched(is_sender(t) ? t->length : t->message)) return start_moving(t);
    fail_connection(t->connection, "its list of pieces makes no sense");
}

enum class Push { wait, now, by_slot };
Push may_push(viadev_connection_t* c, LongTransfer* t) {
    if (t->protocol != Rendezvous::r3) return Push::now;
    if (c->backlog_head != nullptr) return Push::wait;
    // Of its own kind: the last piece, or all of a short message that must be synchronous, is a short packet.
    if (by_slots(c))
        return slot_is_free(c, sizeof(R3Next) + next_piece(t, true)) ? Push::by_slot : Push::wait;
    return c->credits.may_push() ? Push::now : Push::wait;
}

// The receive a packet names, if it is one of this connection's.
LongTransfer* receive_named(viadev_connection_t* c, reqaddr_t name) {
    mpip_req_t* req = viadev.ids.find(name);
    if (req == nullptr || req->r_proc != c->proc || (req->r_flags & MPIP_REQ_SEND) != 0) return nullptr;
    return transfer_of(req);
}

}  // namespace

void start_moving(LongTransfer* t) {
    append(t->connection, t);
    want_flow(t->connection);
}

bool start_with_list(LongTransfer* t, uint64_t address, VIP_MEM_HANDLE handle, size_t count) {
    if (!viadev.rdma_read || (t->theirs = PieceList::awaited(count)) == nullptr) return false;
    t->remote_address = address;
    t->remote_handle = handle;
    t->fetching = true;
    start_moving(t);
    return true;
}

uint64_t now_ns() {
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                     std::chrono::steady_clock::now().time_since_epoch())
                                     .count());
}

void finish_transfer(LongTransfer* t) {
    mpip_req_t* req = t->request;
    if (t->choice.timed) {  // of one that waited behind another, only its own part
        viadev_connection_t* c = t->connection;
        const uint64_t now = now_ns();
        if (t->choice.counts)
            c->ways.tell(t->length, t->choice, now - std::max(t->began, c->last_measured));
        c->last_measured = now;
    }
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

void finish_own_part(LongTransfer* t) {
    t->own_part_done = true;
    send_finish(t->connection, PacketType::rput_finish, t->peer_request, nullptr);
}

void MPID_VIA_long_send(viadev_connection_t* c) {
    while (c->shandle_head != nullptr && !c->lost) {
        LongTransfer* t = c->shandle_head;
        if (t->fetching) {
            if (!fetch_list(c, t)) return want_chores(c);
            c->shandle_head = t->next;  // comes back with its list
            continue;
        }
        while (t->offset < t->end) {
            const Push way = may_push(c, t);
            if (way == Push::wait) return;
            const bool pushed =
                t->protocol == Rendezvous::r3 ? push_packet(c, t, way == Push::by_slot) : push_piece(c, t);
            if (!pushed) return want_chores(c);
        }
        c->shandle_head = t->next;
        if (t->protocol == Rendezvous::r3) {
            finish_transfer(t);  // all of it is in our buffers, or in the peer's
            continue;
        }
        // A copy by this processor takes microseconds: what has come in meanwhile goes first.
        viadev.moved = true;
        if (c->shandle_head != nullptr) want_flow(c);
        return;
    }
}

// The last piece is complete: an rput message has left this side, an rget message is here, or a list is.
// Sends are collected in the middle of other things, so the request is completed later, from the top (G8).
void long_transfer_sent(LongTransfer* t) {
    t->next = viadev.finished;
    viadev.finished = t;
}

void complete_finished() {
    while (viadev.finished != nullptr) {
        LongTransfer* t = viadev.finished;
        viadev.finished = t->next;
        if (t->fetching) {
            list_is_here(t);
            continue;
        }
        if (!is_sender(t)) send_finish(t->connection, PacketType::rget_finish, t->peer_request, nullptr);
        if (t->protocol == Rendezvous::both) {
            t->own_part_done = true;
            finish_part(t);
        } else {
            finish_transfer(t);
        }
    }
}

bool incoming_r3(viadev_connection_t* c, const R3Next& packet, const char* data, size_t bytes) {
    LongTransfer* t = receive_named(c, packet.rreq);
    if (t == nullptr || t->protocol == Rendezvous::rget || t->protocol == Rendezvous::both ||
        packet.packet_no != t->packet_no)
        return false;
    if (bytes == 0 || bytes > t->length - t->offset) return false;
    mpip_req_deliver(t->request, t->offset, data, bytes);
    t->offset += bytes;
    ++t->packet_no;
    if (t->awaited != 0) {
        --t->awaited;
        c->credits.expect(-1);
    }
    if (t->offset == t->length) finish_transfer(t);
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
    finish_transfer(t);
    return true;
}

bool incoming_rget_finish(viadev_connection_t* c, const Finish& packet) {
    mpip_req_t* req = viadev.ids.find(packet.request);
    if (req == nullptr || req->r_proc != c->proc || (req->r_flags & MPIP_REQ_SEND) == 0) return false;
    LongTransfer* t = transfer_of(req);
    if (t->registration == nullptr && t->own == nullptr) return false;
    if (t->replied && t->protocol == Rendezvous::both) {
        if (t->their_part_done) return false;
        t->their_part_done = true;
        finish_part(t);
        return true;
    }
    // Both offered and the receiver read all of it, or that was offered alone.
    if (t->replied || (t->protocol != Rendezvous::rget && t->protocol != Rendezvous::both)) return false;
    finish_transfer(t);
    return true;
}

}  // namespace viaduct::via
