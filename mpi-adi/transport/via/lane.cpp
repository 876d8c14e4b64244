// SPDX-License-Identifier: BSD-2-Clause
// Frames as packets of via: through the peer's ring where it is open, else through the queue for a credit. Eager when
// the message fits and credits remain (spec/adi F7; the design's prose has this test inverted).
#include <algorithm>
#include <cstring>

#include "mpi-adi/transport/via/receive.hpp"

namespace viaduct::via {

using protocol::Frame;
using protocol::FrameType;
using protocol::Payload;

namespace {

constexpr size_t kPartInSlot = kMostInSlot - sizeof(Control);

// The data of a message is cut into equal pieces.
uint32_t slot_piece(size_t length) {
    constexpr size_t kMost = (kMostWritten - sizeof(Data)) & ~(kSlotLine - 1);
    const size_t pieces = std::max<size_t>((length + kMost - 1) / kMost, 2);
    return static_cast<uint32_t>(((length + pieces - 1) / pieces + kSlotLine - 1) & ~(kSlotLine - 1));
}

// Sends a packet, or gives its buffer back.
bool post_or_release(Lane* c, vbuf* v) {
    if (post_packet(c, v)) [[likely]]
        return true;
    release_vbuf(v);
    return false;
}

}  // namespace

size_t Lane::eager_limit(bool contiguous) const {
    const bool in_ring = contiguous && uses_ring(this);
    return in_ring ? std::max(nic.eager_limit, nic.rings.most_written) : nic.eager_limit;
}

size_t Lane::eager_part(bool contiguous) const {
    if (uses_ring(this)) {
        if (contiguous && !in_parts) return std::max(nic.rings.most_written, kPartInSlot);
        return kPartInSlot;
    }
    return std::min(kPartInSlot, MAX_DATA_SIZE);
}

bool Lane::put(const Frame& frame, const Payload& payload) {
    switch (frame.type) {
        case FrameType::eager:
            if (frame.bytes == frame.length)
                return send_eager_packet(payload, frame.bytes, frame.tag, frame.rank, frame.context, frame.flags,
                                         false);
            return put_data(frame, payload);
        case FrameType::next:
        case FrameType::data:
            return put_data(frame, payload);
        case FrameType::closing:
            return send_closing(this);
        default:
            return put_control(frame, payload);
    }
}

size_t Lane::data_part(protocol::Transfer& t) const {
    const size_t left = t.end - t.offset;
    if (in_parts || !uses_ring(this) || !mpip_req_is_contig(t.request)) return std::min(kR3Data, left);
    if (t.part == 0) t.part = slot_piece(t.end);
    return std::min<size_t>(t.part, left);
}

namespace {

void fill_control(Control* p, const Frame& frame) {
    p->header.type = static_cast<PacketType>(frame.type);
    p->header.flags = frame.flags;
    p->announced = frame.type == FrameType::request ? packets_of(frame.length) : 0;
    p->context = frame.context;
    p->tag = static_cast<uint32_t>(frame.tag);
    p->rank = static_cast<uint32_t>(frame.rank);
    p->length = frame.length;
    p->sreq = frame.sreq;
    p->rreq = frame.rreq;
}

// Header of a frame of message data; how long it is.
size_t fill_data(vbuf* v, const Frame& frame, uint32_t number) {
    Header* h = packet_of<Header>(v);
    switch (frame.type) {
        case FrameType::eager:
            fill_control(packet_of<Control>(v), frame);
            h->type = PacketType::first;
            packet_of<Control>(v)->announced = frame.bytes;
            return sizeof(Control);
        case FrameType::next:
            h->type = PacketType::next;
            h->flags = 0;
            packet_of<Next>(v)->number = number;
            return sizeof(Next);
        default:
            h->type = PacketType::data;
            h->flags = 0;
            packet_of<Data>(v)->rreq = frame.rreq;
            packet_of<Data>(v)->at = static_cast<uint32_t>(frame.length);
            return sizeof(Data);
    }
}

}  // namespace

// These leave the preserved credits to other frames, and wait for a slot where the ring is used.
bool Lane::put_data(const Frame& frame, const Payload& payload) {
    const size_t head = frame.type == FrameType::data ? sizeof(Data) : sizeof(Control);
    if (uses_ring(this)) {
        if (!has_free_slot(this, frame.bytes + head)) return false;
        const char* data = payload.contiguous();
        if (frame.type == FrameType::data && data != nullptr &&
            write_r3_now(this, data, frame.bytes, frame.rreq, static_cast<uint32_t>(frame.length))) {
            in_parts = false;
            return true;
        }
    } else if (!credits.may_push()) {
        return false;
    }
    if (frame.bytes + head > kMostInSlot) {
        in_parts = true;
        enter_flow_list(this);
        return false;
    }
    if (!has_place(this)) return false;
    vbuf* v = get_vbuf_or_defer(this);
    if (v == nullptr) return false;
    const size_t used = fill_data(v, frame, frame.type == FrameType::next ? part_out : 0);
    payload.copy(v->buffer + used, frame.bytes);
    vbuf_init_sendrecv(v, used + frame.bytes);
    if (!post_or_release(this, v)) return false;
    if (frame.type != FrameType::data) part_out = frame.type == FrameType::next ? part_out + 1 : 1;
    return true;
}

bool Lane::put_control(const Frame& frame, const Payload& payload) {
    // A long payload is not copied when there is no room for it.
    constexpr size_t kLong = 256;
    if (frame.bytes > kLong && !credits.can_send() &&
        !(uses_ring(this) && has_free_slot(this, sizeof(Control) + frame.bytes)))
        return false;
    if (!has_place(this)) return false;
    vbuf* v = get_vbuf_or_defer(this);
    if (v == nullptr) return false;
    fill_control(packet_of<Control>(v), frame);
    payload.copy(v->buffer + sizeof(Control), frame.bytes);
    vbuf_init_sendrecv(v, sizeof(Control) + frame.bytes);
    return post_or_release(this, v);
}

void Lane::expect(size_t bytes) {
    if (ring.open || bytes == 0) return;
    const int more = static_cast<int>(packets_of(bytes));
    expected_data += more;
    credits.expect(more);
    post_missing_receives(this);  // the reply already reports them (spec/adi F12, F14)
}

// One remote write or read of at most what the NIC takes; 0 when there is no buffer or no place in the queue.
size_t Lane::transfer(bool write, const protocol::PieceList& near, const protocol::PieceList& far, size_t most,
                      protocol::Transfer& t) {
    vbuf* v = get_vbuf_or_defer(this);
    if (v == nullptr) return 0;
    size_t now = std::min<size_t>(nic.attributes.MaxTransferSize, most);
    const unsigned control = write ? VIP_CONTROL_OP_RDMAWRITE : VIP_CONTROL_OP_RDMAREAD;
    const bool gaps = near.count() > 1 || far.count() > 1;
    if (t.change.ch_bytes != 0) {
        vbuf_init_change(v, t.change, far.row().handle[nic.index]);
    } else if (t.copied) {
        if (write) std::memcpy(v->buffer, reinterpret_cast<const void*>(near.address()), now);
        vbuf_init_rdma(v, control, far.address(), far.row().handle[nic.index], v->buffer, v->handle,
                       static_cast<uint32_t>(now));
    } else if (gaps) {
        now = vbuf_init_pieces(v, control, near, far, now, nic.attributes.MaxSegmentsPerDesc, nic.index);
    } else {
        vbuf_init_rdma(v, control, far.address(), far.row().handle[nic.index],
                       reinterpret_cast<void*>(near.address()), near.row().handle[nic.index],
                       static_cast<uint32_t>(now));
    }
    const bool tells = now == most || t.each;
    if (tells) v->transfer = &t;
    if (post_rdma(this, v, gaps ? long_descriptor_of(v) : &v->desc) != MPIP_SUCCESS) {
        release_vbuf(v);
        return 0;
    }
    if (tells) ++nic.local_waits;
    return now;
}

}  // namespace viaduct::via
