// SPDX-License-Identifier: BSD-2-Clause
// Sends: eager when the message fits and credits remain (F7; the design's prose has this test inverted), else
// the long handshake. Requests leave the send queue of their process in order, when their first packet does.
#include <algorithm>

#include "mpi-adi/transport/adi/counters.hpp"
#include "mpi-adi/transport/via/device.hpp"

namespace viaduct::via {

namespace {

// F8
int packets_needed(size_t len) {
    if (len <= MAX_DATA_SIZE) return 1;
    return 1 + static_cast<int>((len - kFirstData + kNextData - 1) / kNextData);
}

void eager_header(EagerStart* h, int src_lrank, int tag, uint64_t context, int mode) {
    h->header.type = PacketType::eager_start;
    h->header.flags = (mode & MPIP_MODE_READY) != 0 ? kFlagReady : 0;
    h->context = context;
    h->tag = static_cast<uint32_t>(tag);
    h->src_lrank = static_cast<uint32_t>(src_lrank);
}

bool send_one_packet(viadev_connection_t* c, const mpip_req_t* req, EagerWay way) {
    if (way == EagerWay::slot && mpip_req_is_contig(req) &&
        write_eager_now(c, req->r_buf, req->r_bytes, req->r_rank, req->r_tag, req->r_ctxt, req->r_mode))
        return true;
    vbuf* v = get_vbuf();
    if (v == nullptr) return false;
    if (way == EagerWay::slot) {
        mpip_req_collect(req, 0, v->buffer, req->r_bytes);
        post_eager_in_slot(c, v, req->r_bytes, req->r_rank, req->r_tag, req->r_ctxt, req->r_mode);
        return true;
    }
    eager_header(packet_of<EagerStart>(v), req->r_rank, req->r_tag, req->r_ctxt, req->r_mode);
    mpip_req_collect(req, 0, v->buffer + sizeof(EagerStart), req->r_bytes);
    vbuf_init_sendrecv(v, sizeof(EagerStart) + req->r_bytes);
    viadev_post_send(c, v);
    return true;
}

vbuf* next_of_series(const mpip_req_t* req, size_t* offset, uint32_t number) {
    vbuf* v = get_vbuf();
    if (v == nullptr) return nullptr;
    size_t head = sizeof(EagerNext);
    size_t now = std::min(kNextData, req->r_bytes - *offset);
    if (number == 0) {
        head = sizeof(EagerFirst);
        now = std::min(kFirstData, req->r_bytes);
        EagerFirst* h = packet_of<EagerFirst>(v);
        h->header.type = PacketType::eager_first;
        h->envelope.context = req->r_ctxt;
        h->envelope.tag = static_cast<uint32_t>(req->r_tag);
        h->envelope.src_lrank = static_cast<uint32_t>(req->r_rank);
        h->envelope.packet_no = 0;
        h->envelope.mode = static_cast<uint32_t>(req->r_mode);
        h->envelope.data_length = req->r_bytes;
        h->envelope.sreq = 0;
        h->envelope.rreq = 0;
        h->bytes_in_this_packet = static_cast<uint32_t>(now);
    } else {
        packet_of<EagerNext>(v)->header.type = PacketType::eager_next;
        packet_of<EagerNext>(v)->packet_no = number;
    }
    packet_of<Header>(v)->flags = 0;
    mpip_req_collect(req, *offset, v->buffer + head, now);
    vbuf_init_sendrecv(v, head + now);
    *offset += now;
    return v;
}

// All packets of one message, nothing between them (C53): they are made first and posted then.
bool send_series(viadev_connection_t* c, const mpip_req_t* req) {
    vbuf* head = nullptr;
    vbuf* tail = nullptr;
    size_t offset = 0;
    for (uint32_t number = 0; offset < req->r_bytes; ++number) {
        vbuf* v = next_of_series(req, &offset, number);
        if (v == nullptr) break;
        v->next = nullptr;
        (head == nullptr ? head : tail->next) = v;
        tail = v;
    }
    const bool whole = offset == req->r_bytes;
    while (head != nullptr) {
        vbuf* v = head;
        head = v->next;
        whole ? viadev_post_send(c, v) : release_vbuf(v);
    }
    return whole;
}

}  // namespace

EagerWay eager_way(viadev_connection_t* c, size_t len) {
    if (c->envelopes_only || len > viadev.eager_limit || c->backlog_head != nullptr) return EagerWay::none;
    // Asked once: the peer may fall asleep between two looks.
    if (len <= kMostInSlot - sizeof(EagerInSlot) && by_slots(c)) {
        return slot_is_free(c, len + sizeof(EagerInSlot)) && has_place(c) ? EagerWay::slot : EagerWay::none;
    }
    const int packets = packets_needed(len);
    return c->credits.eager_ok(packets) &&
                   (packets == 1 || c->sends_outstanding + packets <= viadev.send_depth)
               ? EagerWay::queue
               : EagerWay::none;
}

int MPID_VIA_eager_send(viadev_connection_t* c, const void* buf, size_t len, int src_lrank, int tag,
                        uint64_t context, int mode, EagerWay way) {
    vbuf* v = get_vbuf();
    if (v == nullptr) [[unlikely]]
        return MPIP_AGAIN;
    if (way == EagerWay::slot) {
        if (len != 0) mpip_copy(v->buffer, buf, len);
        ++adi::counters[MPIP_PROTO_VIA].mc_eager;
        post_eager_in_slot(c, v, len, src_lrank, tag, context, mode);
        return MPIP_SUCCESS;
    }
    eager_header(packet_of<EagerStart>(v), src_lrank, tag, context, mode);
    if (len != 0) mpip_copy(v->buffer + sizeof(EagerStart), buf, len);  // an empty message may have no buffer
    vbuf_init_sendrecv(v, sizeof(EagerStart) + len);
    ++adi::counters[MPIP_PROTO_VIA].mc_eager;
    viadev_post_send(c, v);
    return MPIP_SUCCESS;
}

namespace {

// By its length and mode, and by what the receiver wants at all; and with so many packets as the credits can
// ever be.
bool may_be_eager(const viadev_connection_t* c, const mpip_req_t* req) {
    if ((req->r_mode & MPIP_MODE_SYNC) != 0 || c->envelopes_only || req->r_bytes > viadev.eager_limit)
        return false;
    const int packets = packets_needed(req->r_bytes);
    return packets == 1 ||
           (packets <= c->most_credits - viadev.rules.preserve && packets <= viadev.send_depth);
}

// Or for anything else that is not data.
bool room_for_request(viadev_connection_t* c) {
    return (by_slots(c) && slot_is_free(c, sizeof(LongRequest))) || c->credits.can_send();
}

void first_is_sent(process_t* proc) {
    ++adi::counters[MPIP_PROTO_VIA].mc_eager;
    mpip_req_t* req = mpip_deqsend(proc);
    req->r_length = static_cast<int64_t>(req->r_bytes);
    mpip_req_done(req);
}

// Longer than what leaves by the queue without a handshake, and not too long for a slot.
enum class Written { no, waits, yes };
Written write_at_once(viadev_connection_t* c, const mpip_req_t* req) {
    if (req->r_bytes <= viadev.eager_limit || req->r_bytes > viadev.most_written || (req->r_mode & MPIP_MODE_SYNC) != 0 ||
        !mpip_req_is_contig(req) || c->envelopes_only || c->backlog_head != nullptr || !by_slots(c))
        return Written::no;
    if (!slot_is_free(c, req->r_bytes + sizeof(EagerInSlot))) return Written::waits;
    return write_eager_now(c, req->r_buf, req->r_bytes, req->r_rank, req->r_tag, req->r_ctxt, req->r_mode) ? Written::yes
                                                                                                        : Written::no;
}

}  // namespace

void start_queued_sends(viadev_connection_t* c) {
    process_t* proc = c->proc;
    while (proc->p_sendhead != nullptr) {
        mpip_req_t* req = proc->p_sendhead;
        const Written written = write_at_once(c, req);
        if (written == Written::waits) return;
        if (written == Written::yes) {
            first_is_sent(proc);
            continue;
        }
        const EagerWay way = may_be_eager(c, req) ? eager_way(c, req->r_bytes) : EagerWay::none;
        if (way != EagerWay::none) {
            const bool sent =
                req->r_bytes <= MAX_DATA_SIZE ? send_one_packet(c, req, way) : send_series(c, req);
            if (!sent) return want_chores(c);
            first_is_sent(proc);
            continue;
        }
        // A message short enough waits for credits, which come back whenever the receiver polls: a handshake
        // would make the send wait for its receive. Only handshakes use the preserved credits (F9).
        if (may_be_eager(c, req)) {
            c->place_wanted = true;  // a series may wait for places in the queue instead
            return;
        }
        if (c->backlog_head != nullptr || !room_for_request(c)) return;
        if (send_req_long_data(c, req) != MPIP_SUCCESS) return want_chores(c);
        mpip_deqsend(proc);
    }
}

}  // namespace viaduct::via
