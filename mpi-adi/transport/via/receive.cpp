// SPDX-License-Identifier: BSD-2-Clause
// What comes in: one completion at a time, every field checked before it is used (adi-facts 7). A peer that
// sends what cannot be loses its connection and nothing else.
#include <algorithm>
#include <cstring>

#include "mpi-adi/transport/adi/counters.hpp"
#include "mpi-adi/transport/via/device.hpp"

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

// A packet that came in: in a vbuf, or in a slot (v is nullptr), where only such types are that are taken at
// once.
struct Incoming {
    vbuf* v;
    const char* data;  // behind the header, or before it
    size_t bytes;      // of data
};

void release(const Incoming& in) {
    if (in.v != nullptr) release_vbuf(in.v);
}

// A piece of a series: into the receive, or into the chain of what waits for one. Takes the vbuf. False:
// there is no memory to keep it in.
bool place(EagerSeries* s, const Incoming& in) {
    const size_t bytes = in.bytes;
    if (s->request != nullptr) {
        mpip_req_deliver(s->request, s->got, in.data, bytes);
        release(in);
    } else if (s->abandoned) {
        release(in);
    } else {
        vbuf* v = in.v;
        const char* data = in.data;
        if (v == nullptr) {
            v = get_vbuf();
            if (v == nullptr) return false;
            std::memcpy(v->buffer, data, bytes);
            data = v->buffer;
        }
        v->owner = Owner::unexpected;
        v->data = data;
        v->bytes = static_cast<uint32_t>(bytes);
        v->next = nullptr;
        (s->head == nullptr ? s->head : s->tail->next) = v;
        s->tail = v;
    }
    s->got += bytes;
    ++s->packets;
    return true;
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

// These two take the vbuf when they answer true.
bool incoming_eager_first(viadev_connection_t* c, const EagerFirst& p, const Incoming& in) {
    const size_t here = in.bytes;
    const uint64_t total = p.envelope.data_length;
    if (here != p.bytes_in_this_packet || total > INT64_MAX || here > total) return false;
    const envelope env = {p.envelope.context,
                          static_cast<int>(p.envelope.mode & (MPIP_MODE_SYNC | MPIP_MODE_READY)),
                          static_cast<int>(static_cast<uint32_t>(p.envelope.src_lrank)),
                          static_cast<int>(static_cast<uint32_t>(p.envelope.tag)),
                          static_cast<int64_t>(total),
                          0,
                          0};
    EagerSeries* s = new_series(c);
    s->total = total;
    mpip_req_t* match = nullptr;
    switch (mpip_up.arrived(c->proc, &env, in.data, here, s, &match)) {
        case MPIP_IN_TAKEN:  // whole after all
            keep_series(s);
            if (here != total) return false;
            release(in);
            return true;
        case MPIP_IN_MATCHED:
            attach(s, match);
            break;
        default:
            ++adi::counters[MPIP_PROTO_VIA].mc_unexpected;
            break;
    }
    if (!place(s, in)) return false;
    settle_series(c, s);
    return true;
}

bool incoming_eager_next(viadev_connection_t* c, const EagerNext& p, const Incoming& in) {
    EagerSeries* s = c->rhandle;
    if (s == nullptr || p.packet_no != s->packets || in.bytes == 0 || in.bytes > s->total - s->got ||
        !place(s, in))
        return false;
    settle_series(c, s);
    return true;
}

void incoming_eager_start(viadev_connection_t* c, const EagerStart& p, const Incoming& in) {
    const envelope env = {p.context,
                          (p.header.flags & kFlagReady) != 0 ? MPIP_MODE_READY : MPIP_MODE_STANDARD,
                          static_cast<int>(static_cast<uint32_t>(p.src_lrank)),
                          static_cast<int>(static_cast<uint32_t>(p.tag)),
                          static_cast<int64_t>(in.bytes),
                          0,
                          0};
    mpip_req_t* match = nullptr;
    if (mpip_up.arrived(c->proc, &env, in.data, in.bytes, nullptr, &match) == MPIP_IN_MATCHED) {
        mpip_req_deliver_all(match, in.data, in.bytes);
    }
}

template <class Packet>
Incoming data_of(vbuf* v, size_t length) {
    return {v, v->buffer + sizeof(Packet), length - sizeof(Packet)};
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
            good = incoming_eager_first(c, *packet_of<EagerFirst>(v), data_of<EagerFirst>(v, length));
            if (!good) release_vbuf(v);
            return good;
        case PacketType::eager_next:
            good = incoming_eager_next(c, *packet_of<EagerNext>(v), data_of<EagerNext>(v, length));
            if (!good) release_vbuf(v);
            return good;
        case PacketType::long_request:
            good = incoming_long_request(c, *packet_of<LongRequest>(v), length);
            break;
        case PacketType::long_reply:
            good = incoming_long_reply(c, *packet_of<LongReply>(v), length);
            break;
        case PacketType::r3_next:
            good = incoming_r3(c, *packet_of<R3Next>(v), v->buffer + sizeof(R3Next), length - sizeof(R3Next));
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
        case PacketType::slots:
            good = incoming_slots(c, *packet_of<Slots>(v));
            break;
        case PacketType::noop:
        case PacketType::wake:
            good = true;
            break;
        case PacketType::closing:
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

// Packets in slots that were sent before this one of the queue are taken first. They are no more than slots.
void catch_up(viadev_connection_t* c, const Header* h) {
    const bool all = costs_no_credit(h->type);
    uint32_t most = kSlotCount[kShort] + kSlotCount[kLong];
    while (!c->lost && (all || h->sequence != c->next_packet_expected) && most-- != 0 &&
           take_from_slots(c) == 1) {
    }
}

bool is_a_packet(const Header* h, size_t length, size_t most) {
    const size_t least = length < sizeof(Header) ? 0 : least_length(h->type);
    return least != 0 && length >= least && length <= most;
}

bool header_is_good(viadev_connection_t* c, const Header* h, size_t length) {
    if (!is_a_packet(h, length, VBUF_BUFFER_SIZE)) return false;
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
    if (c->slots.open && length >= sizeof(Header)) catch_up(c, h);
    if (c->lost) return release_vbuf(v);
    if (!header_is_good(c, h, length)) [[unlikely]] {
        release_vbuf(v);
        return fail_connection(c, "it sent a packet that cannot be");
    }
    if (h->sequence == viadev.slots_after) lend_slots(c);
    c->envelopes_only = (h->flags & kFlagEnvelopesOnly) != 0;
    if (h->credit != 0 && blocked(c)) want_flow(c);
    want_chores(c);
    // Of the reserve at once: before the credits that came with this packet can be spent (credits.hpp).
    if (costs_no_credit(h->type) && !post_receive(c, true)) c->answer_late = true;
    // In a stream there is no quiet moment for chores: the sender hears of its credits while it still has
    // some.
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
        incoming_eager_start(c, *packet_of<EagerStart>(v), data_of<EagerStart>(v, length));
        release_vbuf(v);
    } else if (!dispatch(v, c, h, length)) {
        fail_connection(c, "it sent a packet that makes no sense here");
    }
}

}  // namespace

// The same for one that lies in a slot, where it may change while it is looked at: the header is copied, data
// is nothing but data, and what is more than that is copied before anybody looks at it.
void take_slot_packet(viadev_connection_t* c, const SlotPacket& p) {
    alignas(8) char copy[sizeof(EagerFirst)];
    const auto* h = reinterpret_cast<const Header*>(copy);
    std::memcpy(copy, p.header, sizeof(Header));
    const PacketType type = h->type;
    const size_t least = least_length(type);
    // A header behind its data takes whole words.
    const size_t head = p.head == 0 ? least : (least + 7) & ~size_t{7};
    // What goes on to where it belongs at once needs no buffer.
    const bool direct = type == PacketType::eager_start || type == PacketType::r3_next;
    bool good = is_a_packet(h, p.length, direct ? kMostWritten : VBUF_BUFFER_SIZE) && !costs_no_credit(type) && h->source == c->rank &&
                h->sequence == c->next_packet_expected && (p.head == 0 || p.head == head) && p.length >= head;
    if (good) {
        ++c->next_packet_expected;
        c->envelopes_only = (h->flags & kFlagEnvelopesOnly) != 0;
        const Incoming in = {nullptr, p.head != 0 ? p.first : p.first + least, p.length - head};
        const bool in_series = c->rhandle != nullptr;
        if (type == PacketType::eager_start && !in_series) [[likely]] {
            std::memcpy(copy + sizeof(Header), p.header + sizeof(Header),
                        sizeof(EagerStart) - sizeof(Header));
            incoming_eager_start(c, *reinterpret_cast<const EagerStart*>(copy), in);
        } else if (type == PacketType::r3_next && !in_series) {
            std::memcpy(copy, p.header, sizeof(R3Next));
            good = incoming_r3(c, *reinterpret_cast<const R3Next*>(copy), in.data, in.bytes);
        } else if (type == PacketType::eager_next) {
            std::memcpy(copy, p.header, sizeof(EagerNext));
            good = incoming_eager_next(c, *reinterpret_cast<const EagerNext*>(copy), in);
        } else if (type == PacketType::eager_first && !in_series) {
            std::memcpy(copy, p.header, sizeof(EagerFirst));
            good = incoming_eager_first(c, *reinterpret_cast<const EagerFirst*>(copy), in);
        } else {
            vbuf* v = p.head == 0 ? get_vbuf() : nullptr;
            if (v == nullptr) return fail_connection(c, "there is no buffer for its packet");
            std::memcpy(v->buffer, p.first, p.length);
            *packet_of<Header>(v) = *h;
            good = dispatch(v, c, packet_of<Header>(v), p.length);
        }
    }
    if (!good) fail_connection(c, "it wrote a packet that makes no sense");
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

// Looks at slots alone between two at the queue as well, where nothing but credits comes through that, or where packets
// in slots never end: those of the queue may be other peers'.
static constexpr uint32_t kLooksAtSlots = 32;

// One look at the slots and the receive completion queue. One packet a call: whoever waits for it need not
// wait for a second, empty look.
int MPID_VIA_DeviceCheck() {
    int answer = 0;
    if (!viadev.lenders.empty()) {
        answer = look_at_slots();
        const bool slots_will_do = answer > 0 || (answer == 0 && viadev.by_queue == 0);
        if (slots_will_do && ++viadev.looks % kLooksAtSlots != 0) return answer;
    }
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN receive;
    if (VipCQDone(viadev.cq, &vi, &receive) != VIP_SUCCESS) return answer > 0 ? 1 : 0;
    return take_completion(vi);
}

// Each pass takes one completion, and those of a connection that has ended get no more: they are no more than all receives
// together. Whatever others send meanwhile cannot keep this going.
void take_what_came_before_the_end(viadev_connection_t* c) {
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN receive;
    const size_t most = viadev.connections.size() * static_cast<size_t>(viadev.rules.depth + viadev.rules.reserve);
    for (size_t i = 0; i <= most && !c->lost; ++i) {
        while (!c->lost && c->slots.open && take_from_slots(c) == 1) {
        }
        if (VipCQDone(viadev.cq, &vi, &receive) != VIP_SUCCESS) return;
        take_completion(vi);
    }
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
