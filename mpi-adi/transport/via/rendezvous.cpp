// SPDX-License-Identifier: BSD-2-Clause
// Long messages until it is agreed how they are moved (adi-facts 6.2, 6.3): request, and reply when the
// receive is there. What a side cannot register, or has in too small pieces, goes by packets. Where
// processors do the NIC's copying, both sides copy at once (both): the receiver reads the beginning, the
// sender writes the rest. Data with gaps is moved by one side, piece by piece: T12, T13 and T14 are a packet,
// a list behind the request or the reply, and a list that stays where it is until the other side fetches it.
#include <algorithm>
#include <utility>

#include "mpi-adi/transport/adi/counters.hpp"
#include "mpi-adi/transport/via/device.hpp"
#include "mpi-adi/transport/via/registration.hpp"

namespace viaduct::via {

namespace {

LongTransfer* free_transfers = nullptr;
LongStart* free_starts = nullptr;

LongStart* new_start() {
    LongStart* start = free_starts;
    if (start == nullptr) return new LongStart;
    free_starts = static_cast<LongStart*>(start->next_free);
    return start;
}

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

// The buffer of a transfer is known to the NIC. False: it is not, and goes by packets.
bool enter_buffer(LongTransfer* t, size_t bytes) {
    mpip_req_t* req = t->request;
    if (mpip_req_is_contig(req)) {
        if (t->registration == nullptr) t->registration = hold_buffer(req->r_buf, bytes);
        return t->registration != nullptr;
    }
    if (t->own == nullptr) t->own = PieceList::of(req, bytes);
    if (t->own != nullptr && !t->own->enter()) t->own = nullptr;
    return t->own != nullptr;
}

void leave_buffer(LongTransfer* t) {
    t->own = nullptr;
    t->theirs = nullptr;
    if (t->registration != nullptr) release_buffer(t->registration);
    t->registration = nullptr;
}

// Tells in a request or a reply where this side's buffer lies. Adds to *length what follows the packet.
// False: a list that does not fit and cannot be read there.
template <class Packet>
bool tell_buffer(Packet* p, LongTransfer* t, size_t* length) {
    p->pieces = 0;
    p->buffer_address = t->registration != nullptr ? reinterpret_cast<uint64_t>(t->request->r_buf) : 0;
    p->memhandle = t->registration != nullptr ? t->registration->handle : 0;
    if (t->own == nullptr) return true;
    if (t->own->fits_behind(sizeof(Packet))) {
        t->own->write(p + 1);
        *length += t->own->wire_bytes();
    } else {
        VIP_MEM_HANDLE handle = 0;
        const WirePiece* list = viadev.rdma_read ? t->own->publish(&handle) : nullptr;
        if (list == nullptr) return false;
        p->buffer_address = reinterpret_cast<uint64_t>(list);
        p->memhandle = handle;
    }
    p->pieces = static_cast<uint32_t>(t->own->count());
    return true;
}

// The list that a packet of `length` bytes speaks of makes sense, as far as it is here: it is put in *list
// when it is all here.
template <class Packet>
bool take_list(const Packet& packet, size_t length, uint64_t bytes, PieceListPtr* list) {
    const uint32_t count = packet.pieces;
    if (count > kMostPieces) return false;
    if (count == 0 || packet.memhandle != 0) return true;
    if (length != sizeof(Packet) + count * sizeof(WirePiece)) return false;
    *list = PieceList::read(&packet + 1, count, bytes);
    return *list != nullptr;
}

// Begins to move between buffers of which either has gaps. `count` pieces at the other side: in t->theirs,
// or at that address; 0: no gaps there, and `bytes` bytes. False: it cannot be done.
bool start_pieces(LongTransfer* t, size_t count, uint64_t address, VIP_MEM_HANDLE handle, size_t bytes) {
    if (t->own == nullptr) t->own = PieceList::of_one(t->request->r_buf, t->end, t->registration->handle);
    if (t->theirs == nullptr && count != 0) {
        if (!start_with_list(t, address, handle, count)) return false;
    } else {
        if (t->theirs == nullptr)
            t->theirs = PieceList::of_one(reinterpret_cast<void*>(address), bytes, handle);
        start_moving(t);
    }
    ++adi::counters[MPIP_PROTO_VIA].mc_scattered;
    return true;
}

void send_reply_for_long_data(LongTransfer* t, const LongStart& start) {
    viadev_connection_t* c = t->connection;
    vbuf* v = get_vbuf();
    if (v == nullptr) return doom_connection(c, "no buffer is left for a reply");
    LongReply* p = packet_of<LongReply>(v);
    size_t length = sizeof(LongReply);
    if (!tell_buffer(p, t, &length)) {
        leave_buffer(t);
        t->protocol = Rendezvous::r3;
    }
    p->header.type = PacketType::long_reply;
    p->header.flags = 0;
    p->rreq = t->request->r_id;
    p->sreq = start.sreq;
    p->context_id = start.context;
    p->src_lrank = start.src_lrank;
    p->mode = MPIP_MODE_RTS;
    p->protocol = static_cast<uint32_t>(t->protocol);
    p->length = t->length;
    p->first = t->end;
    vbuf_init_sendrecv(v, length);
    viadev_post_send(c, v);
}

// Through slots, where that is learnt to be quicker than what the sender offers: nothing is registered for it.
bool goes_through_slots(LongTransfer* t, const LongStart& start) {
    viadev_connection_t* c = t->connection;
    if (start.wanted != Rendezvous::both || start.list_length != 0 || !mpip_req_is_contig(t->request) || !c->slots.open)
        return false;
    t->choice = c->ways.choose(t->length);
    if (t->choice.timed) t->began = now_ns();
    return t->choice.way == Ways::slots;
}

// Data with gaps is moved by whoever has it in more pieces: what is one piece at the other side takes one
// remote write or read. Where processes wait for processors the receiver reads, as with other data.
Rendezvous choose_way(LongTransfer* t, const LongStart& start) {
    if (start.wanted != Rendezvous::both) return start.wanted;
    if (t->own == nullptr && start.list_length == 0)
        return t->length < viadev.both_from ? Rendezvous::rget : Rendezvous::both;
    const size_t here = t->own != nullptr ? t->own->count() : 1;
    return start.list_length > here && viadev.both_from != SIZE_MAX ? Rendezvous::rput : Rendezvous::rget;
}

// The receiver reads, all of it or the beginning. False: it cannot.
bool start_reading(LongTransfer* t, LongStart& start) {
    t->remote_address = start.address;
    t->remote_handle = start.handle;
    if (t->own != nullptr || start.list_length != 0) {
        t->theirs = std::move(start.pieces);
        if (!start_pieces(t, start.list_length, start.address, start.handle, start.length)) return false;
    } else {
        if (t->protocol == Rendezvous::both) {
            t->end = first_part(t->request->r_buf, t->length);
            send_reply_for_long_data(t, start);
        }
        start_moving(t);
    }
    ++adi::counters[MPIP_PROTO_VIA].mc_rget;
    return true;
}

}  // namespace

void keep_start(LongStart* start) {
    start->pieces = nullptr;
    start->next_free = free_starts;
    free_starts = start;
}

LongTransfer* transfer_of(mpip_req_t* req) { return static_cast<LongTransfer*>(req->r_data); }

void forget_transfer(mpip_req_t* req) {
    LongTransfer* t = transfer_of(req);
    viadev.ids.remove(req);
    req->r_data = nullptr;
    if (t == nullptr) return;
    leave_buffer(t);
    t->connection->credits.expect(-static_cast<int>(t->awaited));
    t->next = free_transfers;
    free_transfers = t;
}

int send_req_long_data(viadev_connection_t* c, mpip_req_t* req) {
    vbuf* v = get_vbuf();
    if (v == nullptr) return MPIP_AGAIN;
    LongTransfer* t = new_transfer(req, c);
    LongRequest* p = packet_of<LongRequest>(v);
    size_t length = sizeof(LongRequest);
    t->length = req->r_bytes;
    if (req->r_bytes > viadev.r3_limit) t->protocol = viadev.rendezvous;
    if (t->protocol != Rendezvous::r3 && !mpip_req_is_contig(req)) {
        t->own = PieceList::of(req, req->r_bytes);
        if (t->own == nullptr) t->protocol = Rendezvous::r3;
    }
    p->buffer_address = 0;
    p->memhandle = p->pieces = 0;
    if ((t->protocol == Rendezvous::rget || t->protocol == Rendezvous::both) &&
        (!enter_buffer(t, req->r_bytes) || !tell_buffer(p, t, &length))) {
        leave_buffer(t);
        t->protocol = Rendezvous::r3;
    }
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
    p->descriptor_required = packets_of(req->r_bytes);
    p->protocol = static_cast<uint32_t>(t->protocol);
    vbuf_init_sendrecv(v, length);
    req->r_state = MPIP_REQ_STARTED;
    ++adi::counters[MPIP_PROTO_VIA].mc_long;
    viadev_post_send(c, v);
    // Registering takes its time, and there is some until the answer is here (N38).
    if (t->protocol == Rendezvous::rput) enter_buffer(t, req->r_bytes);
    return MPIP_SUCCESS;
}

void start_long_receive(LongStart& start, mpip_req_t* req) {
    viadev_connection_t* c = start.connection;
    req->r_state |= MPIP_REQ_STARTED;
    req->r_proc = c->proc;
    LongTransfer* t = new_transfer(req, c);
    t->message = start.length;
    t->length = std::min(start.length, req->r_bytes);
    t->peer_request = start.sreq;
    t->end = t->length;
    const bool readable = (start.handle != 0 || start.pieces != nullptr) && viadev.rdma_read;
    if (t->length > viadev.r3_limit && start.wanted != Rendezvous::r3 &&
        (start.wanted == Rendezvous::rput || readable) && !goes_through_slots(t, start) && enter_buffer(t, t->length))
        t->protocol = choose_way(t, start);
    if (t->protocol == Rendezvous::rget || t->protocol == Rendezvous::both) {
        if (start_reading(t, start)) return;
        leave_buffer(t);
        t->protocol = Rendezvous::r3;
    }
    if (t->choice.way == Ways::remote) t->choice = {};  // it is not what was to be timed
    if (t->protocol == Rendezvous::r3 && t->length != 0 && !c->slots.open) {
        t->awaited = packets_of(t->length);
        c->credits.expect(static_cast<int>(t->awaited));
        post_missing_receives(c);  // the reply already tells of them (F12, F14)
    }
    send_reply_for_long_data(t, start);
    if (t->length == 0) finish_transfer(t);
}

bool incoming_long_request(viadev_connection_t* c, const LongRequest& packet, size_t length) {
    LongStart* const kept = new_start();
    LongStart& start = *kept;
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
    start.list_length = packet.pieces;
    if (start.length > INT64_MAX || start.wanted > Rendezvous::both ||
        !take_list(packet, length, start.length, &start.pieces)) {
        keep_start(kept);
        return false;
    }

    const envelope env = {start.context,
                          static_cast<int>(packet.envelope.mode & 0xff) | MPIP_MODE_RTS,
                          static_cast<int>(start.src_lrank),
                          static_cast<int>(static_cast<uint32_t>(packet.envelope.tag)),
                          static_cast<int64_t>(start.length),
                          start.sreq,
                          0};
    mpip_req_t* match = nullptr;
    if (mpip_up.arrived(c->proc, &env, nullptr, 0, kept, &match) == MPIP_IN_MATCHED) {
        start_long_receive(start, match);
        keep_start(kept);
    } else {
        ++adi::counters[MPIP_PROTO_VIA].mc_unexpected;
    }
    return true;
}

// The receiver is reading the beginning meanwhile. Its part may be all there is.
static bool send_second_part(LongTransfer* t, size_t first) {
    t->offset = first;
    t->offset == t->end ? finish_own_part(t) : start_moving(t);
    return true;
}

// Into the memory that the reply names, whose list of pieces is *list where it was short. False: it cannot be
// done, for want of registrations.
static bool start_writing(LongTransfer* t, const LongReply& packet, PieceListPtr* list) {
    if (mpip_req_is_contig(t->request) ? !enter_buffer(t, t->length) : t->own == nullptr) return false;
    t->protocol = Rendezvous::rput;
    if (t->own == nullptr && packet.pieces == 0) {
        start_moving(t);
        return true;
    }
    t->theirs = std::move(*list);
    return start_pieces(t, packet.pieces, packet.buffer_address, packet.memhandle, t->length);
}

bool incoming_long_reply(viadev_connection_t* c, const LongReply& packet, size_t packet_length) {
    mpip_req_t* req = viadev.ids.find(packet.sreq);
    if (req == nullptr || req->r_proc != c->proc || (req->r_flags & MPIP_REQ_SEND) == 0) return false;
    LongTransfer* t = transfer_of(req);
    const uint64_t length = packet.length;
    const uint32_t chosen = packet.protocol;
    const bool both = chosen == static_cast<uint32_t>(Rendezvous::both);
    const bool put = chosen == static_cast<uint32_t>(Rendezvous::rput);
    if (t->replied || length > req->r_bytes) return false;
    // What was not offered cannot be chosen; a remote read is begun without a reply.
    if (both ? t->protocol != Rendezvous::both || t->registration == nullptr || packet.memhandle == 0 ||
                   packet.first > length || length == 0
             : chosen > static_cast<uint32_t>(Rendezvous::rput))
        return false;
    PieceListPtr list;
    if (packet.pieces != 0 && (!put || !take_list(packet, packet_length, length, &list))) return false;
    t->replied = true;
    t->length = t->end = length;
    t->peer_request = packet.rreq;
    t->remote_address = packet.buffer_address;
    t->remote_handle = packet.memhandle;
    if (both) return send_second_part(t, packet.first);
    if (t->length == 0) {
        finish_transfer(t);
        return true;
    }
    if (put && (packet.memhandle != 0 || list != nullptr) && start_writing(t, packet, &list)) {
        ++adi::counters[MPIP_PROTO_VIA].mc_rput;
        return true;
    }
    t->protocol = Rendezvous::r3;
    leave_buffer(t);  // registered in vain (N39)
    ++adi::counters[MPIP_PROTO_VIA].mc_r3;
    start_moving(t);
    return true;
}

}  // namespace viaduct::via
