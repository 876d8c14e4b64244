// SPDX-License-Identifier: BSD-2-Clause
// What comes in: one completion at a time, every field checked before it is used (adi-facts 7). A peer that
// sends what cannot be loses its connection and nothing else.
#include <algorithm>

#include "mpi-adi/protocol/common/counters.hpp"
#include "mpi-adi/protocol/via/device.hpp"

namespace viaduct::via {

static EagerSeries* free_series = nullptr;

void keep_series(EagerSeries* s) {
    s->next_free = free_series;
    free_series = s;
}

namespace {

EagerSeries* new_series(viadev_connection_t* c) {
    EagerSeries* s = free_series;
    if (s != nullptr) {
        free_series = static_cast<EagerSeries*>(s->next_free);
    } else {
        s = new EagerSeries;
    }
    *s = {};
    s->kind = Held::Kind::series;
    s->connection = c;
    return s;
}

// A piece of a series: into the receive, or into the chain of what waits for one. Takes the vbuf.
void place(EagerSeries* s, vbuf* v, const char* data, size_t bytes) {
    if (s->request != nullptr) {
        mpip_req_deliver(s->request, s->got, data, bytes);
        release_vbuf(v);
    } else if (s->abandoned) {
        release_vbuf(v);
    } else {
        v->owner = Owner::unexpected;
        v->data = data;
        v->bytes = static_cast<uint32_t>(bytes);
        v->next = nullptr;
        (s->head == nullptr ? s->head : s->tail->next) = v;
        s->tail = v;
    }
    s->got += bytes;
    ++s->packets;
}

void finish_series(EagerSeries* s) {
    mpip_req_t* req = s->request;
    const size_t total = s->total;
    viadev.ids.remove(req);
    keep_series(s);
    mpip_req_received(req, total);
    mpip_req_done(req);
}

// A piece may have been the last one.
void settle_series(viadev_connection_t* c, EagerSeries* s) {
    if (s->got < s->total) {
        c->rhandle = s;
        return;
    }
    c->rhandle = nullptr;
    if (s->request != nullptr) {
        finish_series(s);
    } else if (s->abandoned) {
        keep_series(s);
    }
}

void attach(EagerSeries* s, mpip_req_t* req) {
    s->request = req;
    req->r_state |= MPIP_REQ_STARTED;
    req->r_proc = s->connection->proc;
    req->r_data = nullptr;
    viadev.ids.add(req);  // so that it is found when the peer is lost
}

bool incoming_eager_first(vbuf* v, viadev_connection_t* c, const EagerFirst* p, size_t length) {
    const size_t here = length - sizeof(EagerFirst);
    const uint64_t total = p->envelope.data_length;
    if (here != p->bytes_in_this_packet || total > INT64_MAX || here > total) return false;
    const envelope env = {p->envelope.context,
                          static_cast<int>(p->envelope.mode & (MPIP_MODE_SYNC | MPIP_MODE_READY)),
                          static_cast<int>(static_cast<uint32_t>(p->envelope.src_lrank)),
                          static_cast<int>(static_cast<uint32_t>(p->envelope.tag)),
                          static_cast<int64_t>(total),
                          0,
                          0};
    EagerSeries* s = new_series(c);
    s->total = total;
    const char* data = reinterpret_cast<const char*>(p + 1);
    mpip_req_t* match = nullptr;
    switch (mpip_up.arrived(c->proc, &env, data, here, s, &match)) {
        case MPIP_IN_TAKEN:  // whole after all
            keep_series(s);
            release_vbuf(v);
            return here == total;
        case MPIP_IN_MATCHED:
            attach(s, match);
            break;
        default:
            ++adi::counters[MPIP_PROTO_VIA].mc_unexpected;
            break;
    }
    place(s, v, data, here);
    settle_series(c, s);
    return true;
}

bool incoming_eager_next(vbuf* v, viadev_connection_t* c, const EagerNext* p, size_t length) {
    EagerSeries* s = c->rhandle;
    const size_t bytes = length - sizeof(EagerNext);
    if (s == nullptr || p->packet_no != s->packets || bytes == 0 || bytes > s->total - s->got) return false;
    place(s, v, reinterpret_cast<const char*>(p + 1), bytes);
    settle_series(c, s);
    return true;
}

// The handler of a packet's type. False: the packet is not what it should be. Takes the vbuf either way.
bool dispatch(vbuf* v, viadev_connection_t* c, const Header* h, size_t length) {
    const PacketType type = h->type;
    if (c->rhandle != nullptr && type != PacketType::eager_next && !costs_no_credit(type)) [[unlikely]] {
        release_vbuf(v);
        return false;  // C53
    }
    bool good;
    switch (type) {
        case PacketType::eager_first:
            good = incoming_eager_first(v, c, packet_of<EagerFirst>(v), length);
            if (!good && v->owner == Owner::handler) release_vbuf(v);
            return good;
        case PacketType::eager_next:
            good = incoming_eager_next(v, c, packet_of<EagerNext>(v), length);
            if (!good) release_vbuf(v);
            return good;
        case PacketType::long_request:
            good = incoming_long_request(c, *packet_of<LongRequest>(v), length);
            break;
        case PacketType::long_reply:
            good = incoming_long_reply(c, *packet_of<LongReply>(v), length);
            break;
        case PacketType::r3_next:
            good = incoming_r3(c, *packet_of<R3Next>(v), length);
            break;
        case PacketType::rput_finish:
            good = incoming_rput_finish(c, *packet_of<Finish>(v));
            break;
        case PacketType::rget_finish:
            good = incoming_rget_finish(c, *packet_of<Finish>(v));
            break;
        case PacketType::cancel_request:
            good = incoming_cancel_request(c, *packet_of<Cancel>(v));
            break;
        case PacketType::cancel_reply:
            good = incoming_cancel_reply(c, *packet_of<Cancel>(v));
            break;
        case PacketType::noop:
            good = true;
            break;
        case PacketType::goodbye:
            good = !c->goodbye_had;
            c->goodbye_had = true;
            c->proc->p_flags |= MPIP_PROC_LEFT;
            break;
        default:
            good = false;
            break;
    }
    release_vbuf(v);
    return good;
}

bool header_is_good(viadev_connection_t* c, const Header* h, size_t length) {
    const size_t least = length < sizeof(Header) ? 0 : least_length(h->type);
    if (least == 0 || length < least || length > VBUF_BUFFER_SIZE) return false;
    const bool free_packet = costs_no_credit(h->type);
    if (h->source != c->rank) return false;
    if (h->sequence != (free_packet ? 0 : c->next_packet_expected)) return false;
    if (!free_packet) ++c->next_packet_expected;
    return c->credits.heard(h->credit, h->view, h->noops) && c->credits.used(free_packet);
}

// One packet: credits first (F3), then receives for those that are short (their credits travel with a reply
// the handler may send), then the handler.
void take_packet(viadev_connection_t* c, vbuf* v) {
    const size_t length = v->desc.CS.Length;
    Header* h = packet_of<Header>(v);
    v->owner = Owner::handler;
    if (!header_is_good(c, h, length)) [[unlikely]] {
        release_vbuf(v);
        return fail_connection(c, "it sent a packet that cannot be");
    }
    c->envelopes_only = (h->flags & kFlagEnvelopesOnly) != 0;
    if (h->credit != 0 && blocked(c)) want_flow(c);
    want_chores(c);
    // Of the reserve at once: before the credits that came with this packet can be spent (credits.hpp).
    if (costs_no_credit(h->type) && !post_receive(c, true)) c->answer_late = true;
    // In a stream there is no quiet moment for chores: the sender hears of its credits while it still has some.
    if (c->credits.posted() <= c->credits.rules().depth / 2) [[unlikely]] {
        post_missing_receives(c);
        if (c->credits.want_noop()) send_noop(c);
    } else if (h->type != PacketType::eager_start && c->credits.missing() >= c->credits.rules().notify) {
        // Long messages are answered, and the answers tell of these: so neither side of a stream runs out.
        // Data in packets is not, nor a request while its receive is not there.
        post_missing_receives(c);
        if (c->credits.much_untold()) send_noop(c);
    }
    if (h->type == PacketType::eager_start && c->rhandle == nullptr) [[likely]] {
        viadev_incoming_eager_start(v, c, reinterpret_cast<const EagerStart*>(h));
        release_vbuf(v);
    } else if (!dispatch(v, c, h, length)) {
        fail_connection(c, "it sent a packet that makes no sense here");
    }
}

}  // namespace

bool viadev_incoming_eager_start(vbuf* v, viadev_connection_t* c, const EagerStart* header) {
    const size_t bytes = v->desc.CS.Length - sizeof(EagerStart);
    const envelope env = {header->context,
                          (header->header.flags & kFlagReady) != 0 ? MPIP_MODE_READY : MPIP_MODE_STANDARD,
                          static_cast<int>(static_cast<uint32_t>(header->src_lrank)),
                          static_cast<int>(static_cast<uint32_t>(header->tag)),
                          static_cast<int64_t>(bytes),
                          0,
                          0};
    mpip_req_t* match = nullptr;
    if (mpip_up.arrived(c->proc, &env, header + 1, bytes, nullptr, &match) == MPIP_IN_MATCHED) {
        mpip_req_deliver_all(match, header + 1, bytes);
    }
    return true;
}

void deliver_series(EagerSeries* s, mpip_req_t* req) {
    size_t offset = 0;
    while (s->head != nullptr) {
        vbuf* v = s->head;
        s->head = v->next;
        mpip_req_deliver(req, offset, v->data, v->bytes);
        offset += v->bytes;
        release_vbuf(v);
    }
    attach(s, req);
    if (s->got == s->total) {
        finish_series(s);
    } else if (s->connection->lost) {
        viadev.ids.remove(req);
        keep_series(s);
        req->r_error = MPIP_ERR_PROC_FAILED;
        mpip_req_done(req);
    }
}

void abandon_series(EagerSeries* s) {
    while (s->head != nullptr) {
        vbuf* v = s->head;
        s->head = v->next;
        release_vbuf(v);
    }
    s->abandoned = true;
    if (s->got == s->total || s->connection->lost) keep_series(s);
}

// One look at the receive completion queue. One packet a call: whoever waits for it need not wait for a
// second, empty look.
int MPID_VIA_DeviceCheck() {
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN receive;
    if (VipCQDone(viadev.cq, &vi, &receive) != VIP_SUCCESS) return 0;
    return take_completion(vi);
}

int take_completion(VIP_VI_HANDLE vi) {
    VIP_DESCRIPTOR* desc = nullptr;
    const VIP_RETURN rc = VipRecvDone(vi, &desc);
    // Of a queue that was collected directly. There may be more behind it: a goodbye, say, that must not be
    // missed.
    if (desc == nullptr) return 1;
    vbuf* v = vbuf_of(desc);
    viadev_connection_t* c = v->connection;
    if (rc != VIP_SUCCESS) [[unlikely]] {
        release_vbuf(v);
        if (!c->lost) fail_connection(c, "the connection is broken");
        return 1;
    }
    if (!c->initialized && !finish_opening(c)) [[unlikely]] {
        release_vbuf(v);
        fail_connection(c, "the connection is broken");
        return 1;
    }
    take_packet(c, v);
    return 1;
}

}  // namespace viaduct::via
