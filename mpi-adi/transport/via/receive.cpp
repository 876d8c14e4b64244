// SPDX-License-Identifier: BSD-2-Clause
// Receiving: one completion at a time, every field checked before it is used (spec/adi 7). A peer that sends an invalid
// packet loses its connection, and nothing else happens.
#include <algorithm>
#include <cstring>

#include "mpi-adi/transport/adi/counters.hpp"
#include "mpi-adi/transport/via/receive.hpp"

namespace viaduct::via {

namespace {

using protocol::Frame;
using protocol::FrameType;

// The frame that a packet is. `p` lies in a buffer of ours, with as much as its type has at least.
Frame frame_of(const Header* h, size_t data) {
    Frame frame = {};
    frame.type = static_cast<FrameType>(h->type);
    frame.flags = h->flags;
    frame.bytes = static_cast<uint32_t>(data);
    switch (h->type) {
        case PacketType::next:
        case PacketType::closing:
            break;
        case PacketType::eager: {
            const auto* p = reinterpret_cast<const Eager*>(h);
            frame.context = p->context;
            frame.tag = static_cast<int32_t>(static_cast<uint32_t>(p->tag));
            frame.rank = static_cast<int32_t>(static_cast<uint32_t>(p->rank));
            frame.length = data;
            break;
        }
        case PacketType::data:
            frame.rreq = reinterpret_cast<const Data*>(h)->rreq;
            frame.length = reinterpret_cast<const Data*>(h)->at;
            break;
        default: {
            const auto* p = reinterpret_cast<const Control*>(h);
            if (h->type == PacketType::first) frame.type = FrameType::eager;
            frame.context = p->context;
            frame.tag = static_cast<int32_t>(static_cast<uint32_t>(p->tag));
            frame.rank = static_cast<int32_t>(static_cast<uint32_t>(p->rank));
            frame.length = p->length;
            frame.sreq = p->sreq;
            frame.rreq = p->rreq;
            break;
        }
    }
    return frame;
}

// A packet of the queue or of a ring, its header in memory of this process. False: it is invalid.
bool take_any(Lane* c, const Header* h, const char* data, size_t bytes) {
    switch (h->type) {
        case PacketType::ring_offer:
            return take_ring_offer(c, *reinterpret_cast<const RingOffer*>(h));
        case PacketType::noop:
        case PacketType::wake:
            return true;
        case PacketType::first:
            if (reinterpret_cast<const Control*>(h)->length <= bytes ||
                reinterpret_cast<const Control*>(h)->announced != bytes)
                return false;
            c->part_in = 1;
            break;
        case PacketType::next:
            if (reinterpret_cast<const Next*>(h)->number != c->part_in++) return false;
            break;
        case PacketType::data:
            if (c->expected_data != 0) {
                --c->expected_data;
                c->credits.expect(-1);
            }
            break;
        default:
            break;
    }
    return c->peer.protocol->incoming(c->peer, frame_of(h, bytes), data);
}

// Packets in the ring that were sent before this one of the queue are taken first: at most as many as there are slots.
void catch_up(Lane* c, const Header* h) {
    const bool all = costs_no_credit(h->type);
    uint32_t most = kSlotCount[kShort] + kSlotCount[kLong];
    while (!c->peer.lost() && (all || h->sequence != c->next_packet_expected) && most-- != 0 &&
           receive_from_ring(c) == 1) {
    }
}

bool is_a_packet(const Header* h, size_t length, size_t most) {
    const size_t least = length < sizeof(Header) ? 0 : least_length(h->type);
    return least != 0 && length >= least && length <= most;
}

bool header_is_good(Lane* c, const Header* h, size_t length) {
    if (!is_a_packet(h, length, VBUF_BUFFER_SIZE)) return false;
    const bool free_packet = costs_no_credit(h->type);
    if (h->source != c->peer.rank) return false;
    if (h->sequence != (free_packet ? 0 : c->next_packet_expected)) return false;
    if (!free_packet) ++c->next_packet_expected;
    return c->credits.read_header(h->credit, h->view, h->noops) && c->credits.used(free_packet);
}

// One packet: credits first (spec/adi F3), then receives for those that are short (their credits travel with
// a reply the handler may send), then the handler.
void take_packet(Lane* c, vbuf* v) {
    const size_t length = v->desc.CS.Length;
    Header* h = packet_of<Header>(v);
    v->owner = Owner::handler;
    if (c->ring.open && length >= sizeof(Header)) catch_up(c, h);
    if (c->peer.lost()) return release_vbuf(v);
    if (!header_is_good(c, h, length)) [[unlikely]] {
        release_vbuf(v);
        return fail_connection(c, "it sent an invalid packet");
    }
    if (h->sequence == c->nic.rings.offer_after) offer_ring(c);
    if (h->credit != 0 && c->peer.blocked()) enter_flow_list(c);
    defer_work(c);
    // Of the reserve at once: before the credits that came with this packet can be spent (credits.hpp).
    if (costs_no_credit(h->type) && !post_receive(c, true)) c->refill_late = true;
    // A stream leaves no idle pass for deferred work: credits are reported while the sender still has some.
    if (c->credits.posted() <= c->credits.rules().depth / 2) [[unlikely]] {
        post_missing_receives(c);
        if (c->credits.noop_due()) send_noop(c);
    } else if (h->type != PacketType::eager && c->credits.missing() >= c->credits.rules().notify) {
        // The answers to long messages report these, so neither side of a stream runs out of credits. Data in packets
        // is not answered, nor is a request without a matching receive.
        post_missing_receives(c);
        if (c->credits.many_unreported()) send_noop(c);
    }
    const size_t head = least_length(h->type);
    const bool good = take_any(c, h, v->buffer + head, length - head);
    release_vbuf(v);
    if (!good) fail_connection(c, "it sent a packet that is invalid in this state");
}

// The peer has this connection, too.
void take_hello(Lane* c, vbuf* v) {
    const Header* h = packet_of<Header>(v);
    const bool good = v->desc.CS.Length == sizeof(Header) && h->type == PacketType::hello && h->source == c->peer.rank;
    release_vbuf(v);
    if (c->peer.lost()) return;
    if (!good) return fail_connection(c, "its first packet is no hello");
    if (c->connecting) return finish_attempt(c);
    connected(c);
}

}  // namespace

// A packet in the ring, where the peer may change it at any time: the header is copied, message data is only copied to
// its receive, and other content behind a header is copied before it is read.
void take_ring_packet(Lane* c, const RingPacket& p) {
    alignas(8) char copy[sizeof(Control)];
    static char behind[VBUF_BUFFER_SIZE];
    const auto* h = reinterpret_cast<const Header*>(copy);
    std::memcpy(copy, p.header, sizeof(Header));
    const PacketType type = h->type;
    const size_t least = least_length(type);
    // A header behind its data takes whole words.
    const size_t head = p.head == 0 ? least : (least + 7) & ~size_t{7};
    const bool message = type == PacketType::eager || type == PacketType::data;
    if (!is_a_packet(h, p.length, message ? kMostWritten : VBUF_BUFFER_SIZE) || costs_no_credit(type) ||
        h->source != c->peer.rank || h->sequence != c->next_packet_expected || (p.head != 0 && p.head != head) ||
        p.length < head)
        return fail_connection(c, "it wrote an invalid packet");
    ++c->next_packet_expected;
    std::memcpy(copy + sizeof(Header), p.header + sizeof(Header), least - sizeof(Header));
    const char* data = p.head != 0 ? p.first : p.first + least;
    const size_t bytes = p.length - head;
    if (type == PacketType::request || type == PacketType::reply || type == PacketType::carried) {
        std::memcpy(behind, data, bytes);
        data = behind;
    }
    if (!take_any(c, h, data, bytes)) fail_connection(c, "it wrote an invalid packet");
}

// Polls of the rings alone between two polls of the queue, where the queue brings nothing but credits, or where the
// rings always have a packet: other peers may have packets in the queue.
static constexpr uint32_t kRingPolls = 32;

// Polls the rings and the receive completion queue. Takes one packet for each call, so that a caller that waits for it
// does not pay for a second, empty poll; of a ring that always has a packet up to kMostAtOnce (poll_rings).
int poll_packets(Nic& nic) {
    int answer = 0;
    if (!nic.rings.open_lanes.empty()) {
        answer = poll_rings(nic);
        const bool rings_only = answer > 0 || (answer == 0 && nic.rings.queue_only == 0);
        if (rings_only && ++nic.rings.polls % kRingPolls != 0) return answer;
    }
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN receive;
    if (VipCQDone(nic.cq, &vi, &receive) != VIP_SUCCESS) return answer > 0 ? 1 : 0;
    return take_completion(vi);
}

// Takes what the peer sent before its connection ended. The bound is the number of all receives: a connection that has
// ended gets no more completions, and packets of other peers cannot prolong the loop.
void drain_before_failure(Lane* c) {
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN receive;
    const size_t most =
        c->nic.lanes.size() * static_cast<size_t>(c->nic.credit_rules.first_receives());
    for (size_t i = 0; i <= most && !c->peer.lost(); ++i) {
        while (!c->peer.lost() && c->ring.open && receive_from_ring(c) == 1) {
        }
        if (VipCQDone(c->nic.cq, &vi, &receive) != VIP_SUCCESS) return;
        take_completion(vi);
    }
}

int take_completion(VIP_VI_HANDLE vi) {
    VIP_DESCRIPTOR* desc = nullptr;
    const VIP_RETURN rc = VipRecvDone(vi, &desc);
    // Its queue was collected directly. The completion queue may have more entries, the last packet of a peer among
    // them.
    if (desc == nullptr) return 1;
    vbuf* v = vbuf_of(desc);
    Lane* c = v->connection;
    if (rc != VIP_SUCCESS) [[unlikely]] {
        release_vbuf(v);
        if (!c->peer.ready() && !c->peer.lost()) {  // the code that connects it sees that
            c->broken = true;
            return 1;
        }
        while (!c->peer.lost() && c->ring.open && receive_from_ring(c) == 1) {
        }  // what came before the end
        if (!c->peer.lost()) fail_connection(c, "the connection is broken");
        return 1;
    }
    if (c->peer.ready()) [[likely]]
        take_packet(c, v);
    else
        take_hello(c, v);
    return 1;
}

}  // namespace viaduct::via
