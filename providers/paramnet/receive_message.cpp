// SPDX-License-Identifier: BSD-2-Clause
// The slow path of a line: from lines and blocks into posted receives. Everything here runs with
// vi.recv.lock held. Each word of the lane is checked: lengths are bounded by what they index, and an
// impossible line breaks the connection.
#include "providers/paramnet/group.hpp"
#include "providers/paramnet/nic.hpp"
#include "providers/paramnet/own_memory.hpp"
#include "providers/paramnet/rdma.hpp"
#include "providers/paramnet/receive.hpp"
#include "providers/paramnet/rendezvous.hpp"
#include "providers/paramnet/told_cause.hpp"

namespace viaduct::paramnet {

namespace {

// Completes the receive of a message that cannot be placed and does what the level asks for (spec/reliability 6.2).
void refuse_receive(Endpoint& ep, uint32_t error) {
    complete_head(ep.vi->recv, VIP_STATUS_OP_RECEIVE | error, 0);
    if (ep.rx.unreliable) return;
    tell_cause(ep, ep.vi->cause_of(ep.vi->recv).cause);
    acknowledge_error(ep, VIP_STATUS_REMOTE_DESC_ERROR);
    break_by_line(ep, VIP_ERROR_CONN_LOST, false);
}

// Into the receive of the message under way. False: it has been refused, or the connection is broken. A
// thread of ours must not die of memory that the program has unmapped; the program's own calls pay nothing
// for that.
bool place_in_receive(Endpoint& ep, const std::byte* from, uint32_t n) {
    SegmentCursor& cursor = ep.rx.message.cursor;
    if (!ep.servicing)
        return scatter(cursor, from, n) == n || protocol_violation(ep);  // it was changed while it was ours
    if (scatter_accessible(cursor, from, n) == n) return true;
    ep.vi->cause_of(ep.vi->recv).cause.kind = CauseKind::changed_or_unmapped;
    refuse_receive(ep, VIP_STATUS_PROTECTION_ERROR);
    return false;
}

bool take_message(Endpoint& ep, const Line& line, uint32_t meta) {
    Rx& rx = ep.rx;
    const uint32_t flags = flags_in(meta), n = length_in(meta);
    const uint32_t total = (flags & kFlagBlocks) != 0 ? read_extra(line) : n;
    if (rx.message.kind != IncomingMessage::none || n > total) return protocol_violation(ep);
    const BlockPlace where = read_payload<BlockPlace>(line);
    const std::byte* from = payload_of(ep, line, flags, n, where.unit);
    if (from == nullptr) return false;
    IncomingMessage& m = rx.message;
    m.flags = flags;
    m.immediate = line.immediate;
    m.total = total;
    m.remaining = total - n;
    if ((flags & kFlagProbe) != 0) m.mark = take_probe_mark(ep, line);
    if (!open_receive(ep, total) || !place_in_receive(ep, from, n)) {
        if (ep.vi->is_marked_broken()) return false;
        if (m.remaining != 0) {
            m.kind = IncomingMessage::discarded;
        } else if ((flags & kFlagAck) != 0) {
            acknowledge(ep);
        }
        return true;
    }
    if (m.remaining != 0) {
        m.kind = IncomingMessage::into_receive;
    } else {
        if ((flags & kFlagProbe) != 0) publish_probe_result(ep, m.mark);
        close_receive(ep, VIP_STATUS_OP_RECEIVE, flags, m.immediate, total);
    }
    return true;
}

bool take_more(Endpoint& ep, const Line& line, uint32_t meta) {
    IncomingMessage& m = ep.rx.message;
    const uint32_t flags = flags_in(meta), n = length_in(meta);
    if (m.kind == IncomingMessage::none || n == 0 || n > m.remaining || (flags & kFlagBlocks) == 0)
        return protocol_violation(ep);
    const BlockPlace where = read_payload<BlockPlace>(line);
    const std::byte* from = payload_of(ep, line, flags, n, where.unit);
    if (from == nullptr) return false;
    if (m.kind == IncomingMessage::into_receive) {
        if (!place_in_receive(ep, from, n)) {
            if (ep.servicing) m.kind = IncomingMessage::discarded;  // its receive is complete
            if (ep.vi->is_marked_broken()) return false;
        }
    } else if (m.kind == IncomingMessage::into_memory && !place_served(ep, from, n)) {
        return false;
    }
    m.remaining -= n;
    if (m.remaining != 0) return true;
    const IncomingMessage::Kind kind = m.kind;
    m.kind = IncomingMessage::none;
    if (kind == IncomingMessage::into_memory) return finish_served_write(ep);
    if (kind == IncomingMessage::into_receive) {
        if ((m.flags & kFlagProbe) != 0) publish_probe_result(ep, m.mark);
        close_receive(ep, VIP_STATUS_OP_RECEIVE, flags, m.immediate, m.total);
    } else if ((flags & kFlagAck) != 0) {
        acknowledge(ep);
    }
    return true;
}

// An RDMA write with immediate data takes a receive and leaves its segments alone (spec/descriptors 2.4).
bool take_immediate(Endpoint& ep, const Line& line, uint32_t meta, uint32_t error) {
    WorkQueue& q = ep.vi->recv;
    if (ep.rx.message.kind != IncomingMessage::none || !q.has_untaken()) return protocol_violation(ep);
    ++q.taken;
    const uint32_t length = error == 0 ? read_extra(line) : 0;
    if (error != 0) ep.vi->cause_of(q) = {cause_told(ep), true};
    close_receive(ep, VIP_STATUS_OP_REMOTE_RDMA_WRITE | error, flags_in(meta) | kFlagImmediate,
                  line.immediate, length);
    if (error != 0 && !ep.rx.unreliable) break_by_line(ep, VIP_ERROR_CONN_LOST, false);
    return true;
}

}  // namespace

// Everything but the hot path. False: the line was not taken, the connection is broken.
bool take_line(Endpoint& ep, const Line& line, uint32_t meta) {
    switch (operation_in(meta)) {
        case kLineSend:
            return take_message(ep, line, meta);
        case kLineMore:
            return take_more(ep, line, meta);
        case kLinePull:
            return take_pull(ep, line, meta);
        case kLineImmediate:
            return take_immediate(ep, line, meta, 0);
        case kLineWriteRefused:
            // spec/reliability 7: with immediate data the error goes to the receive, not to the error handler.
            return take_immediate(ep, line, meta, VIP_STATUS_RDMA_PROT_ERROR);
        case kLineWrite:
            return take_served_write(ep, line, meta);
        case kLineRead:
            return take_read_request(ep, line);
        case kLineAtomic:
            return take_atomic_request(ep, line);
        case kLineReadData:
        case kLineReadRefused:
            return take_read_data(ep, line, meta);
        default:
            return protocol_violation(ep);
    }
}

const std::byte* payload_of(Endpoint& ep, const Line& line, uint32_t flags, uint32_t length, uint32_t unit) {
    Rx& rx = ep.rx;
    if ((flags & kFlagBlocks) == 0) {
        if (length > kInlineBytes) {
            protocol_violation(ep);
            return nullptr;
        }
        return line.payload;
    }
    if (length == 0) return rx.blocks;
    // The sender's rule for where a fragment goes leaves one possible place.
    const uint32_t wanted = units_for(length);
    const uint32_t offset = rx.unit_next % kUnits;
    const uint32_t skipped = offset + wanted > kUnits ? kUnits - offset : 0;
    const uint32_t expected = skipped != 0 ? 0 : offset;
    if (length > kMaxFragment || unit != expected) {
        protocol_violation(ep);
        return nullptr;
    }
    rx.unit_next += skipped + wanted;
    return rx.blocks + size_t{expected} * kUnitBytes;
}

namespace {

Cause too_small(uint64_t message, uint64_t capacity) {
    Cause cause;
    cause.kind = CauseKind::receive_too_small;
    cause.operation = CauseOperation::receive;
    cause.length = message;
    cause.high = capacity;
    return cause;
}

}  // namespace

bool open_receive(Endpoint& ep, uint32_t total) {
    WorkQueue& q = ep.vi->recv;
    // The sender has the number of receives: one too many comes from no correct sender.
    if (!q.has_untaken()) return protocol_violation(ep);
    VIP_DESCRIPTOR* d = q.next_untaken();
    ++q.taken;
    uint64_t capacity = 0;
    uint32_t error = check_receive(*ep.vi, d, total, &capacity);
    if (error == 0 && total > capacity) {
        error = VIP_STATUS_LENGTH_ERROR;
        ep.vi->cause_of(q).cause = too_small(total, capacity);
    }
    // For the hot path of the next one, which looks at the bytes of the message only.
    if (error == 0 && d->CS.SegCount == 1 && !ep.vi->strict_receives) {
        const SegmentValue s = read_segment(d->DS[0].Local);
        ep.vi->regions->check_and_remember(q.buffers, s.handle, s.address, total, ep.vi->ptag);
    }
    if (error != 0) {
        refuse_receive(ep, error);
        return false;
    }
    ep.rx.message.cursor.begin(d, total, ep.vi->regions, ep.vi->ptag);
    return true;
}

void acknowledge(Endpoint& ep) {
    count_ack(ep.rx);
    tell_ack(ep);
}

void break_by_line(Endpoint& ep, VIP_ERROR_CODE code, bool report, VIP_ULONG opcode, const Cause& cause) {
    ep.rx.ended = true;
    break_connection(ep, code, report, opcode, cause);
}

bool protocol_violation(Endpoint& ep) {
    Cause cause;
    cause.kind = CauseKind::protocol;
    break_by_line(ep, VIP_ERROR_CONN_LOST, true, 0, cause);
    return false;
}

void acknowledge_error(Endpoint& ep, uint32_t status) {
    Rx& rx = ep.rx;
    if (!rx.acknowledged) return;
    rx.own->placed.store(rx.acks | uint64_t{status} << 32, std::memory_order_release);
    light_barrier();
    if (rx.peer->send_mode.load(std::memory_order_relaxed) != kModePolled) ring_peer(ep);
}

}  // namespace viaduct::paramnet
