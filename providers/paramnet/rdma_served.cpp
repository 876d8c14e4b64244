// SPDX-License-Identifier: BSD-2-Clause
// RDMA with the target's help, where its memory cannot be reached from outside: the bytes travel through the
// lanes as fragments, and the thread that takes the target's lane (of its application, or its progress thread)
// moves them.
#include <algorithm>

#include "providers/paramnet/change_word.hpp"
#include "providers/paramnet/nic.hpp"
#include "providers/paramnet/own_memory.hpp"
#include "providers/paramnet/rdma.hpp"
#include "providers/paramnet/receive.hpp"
#include "providers/paramnet/send.hpp"
#include "providers/paramnet/told_cause.hpp"

namespace viaduct::paramnet {

namespace {

// While we touch registered memory on the peer's behalf; region_removed waits for it. False: not permitted
// (any more), or the move has failed.
template <class Move>
bool with_region(Endpoint& ep, std::atomic<uint32_t>& busy, uint32_t handle, uint64_t address,
                 uint64_t length, uint32_t region_flag, Move move) {
    busy.store(handle, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    Region region;
    bool done = ep.nic->regions->snapshot(handle, &region) && (region.flags & region_flag) == region_flag &&
                ptags_agree(region.ptag, ep.vi->ptag) && length <= region.length &&
                address - region.base <= region.length - length;
    done = done && move();
    busy.store(0, std::memory_order_release);
    return done;
}

bool range_permitted(Endpoint& ep, std::atomic<uint32_t>& busy, uint32_t handle, uint64_t address,
                     uint64_t length, uint32_t region_flag) {
    return length == 0 || with_region(ep, busy, handle, address, length, region_flag, [] { return true; });
}

// spec/reliability 6.2 "RDMA write refused at target", seen from the target.
bool refuse_write(Endpoint& ep, uint32_t flags, uint32_t immediate) {
    Rx& rx = ep.rx;
    Cause cause;
    if (!rx.unreliable) {
        const IncomingMessage& m = rx.message;
        cause = explain_own_target(ep, m.handle, m.address, m.total, kRegionRdmaWrite);
        ep.vi->cause_of(ep.vi->recv).cause = cause;
        tell_cause(ep, cause);
    }
    if ((flags & kFlagImmediate) != 0) {  // spec/reliability 7: the receive gets the error
        WorkQueue& q = ep.vi->recv;
        if (!q.has_untaken()) return protocol_violation(ep);
        ++q.taken;
        close_receive(ep, VIP_STATUS_OP_REMOTE_RDMA_WRITE | VIP_STATUS_RDMA_PROT_ERROR, kFlagImmediate,
                      immediate, 0);
    } else if (rx.unreliable) {
        ep.vi->events->async_error(*ep.vi, VIP_ERROR_RDMAW_PROT, VIP_RESOURCE_VI,
                                   VIP_STATUS_OP_REMOTE_RDMA_WRITE, nullptr);
    }
    if (rx.unreliable) return true;
    acknowledge_error(ep, VIP_STATUS_RDMA_PROT_ERROR);
    break_by_line(ep, VIP_ERROR_RDMAW_PROT, (flags & kFlagImmediate) == 0, VIP_STATUS_OP_REMOTE_RDMA_WRITE, cause);
    return false;
}

}  // namespace

Step begin_served_write(Endpoint& ep, VIP_DESCRIPTOR* d, uint32_t total) {
    const uint32_t flags = (d->CS.Control & VIP_CONTROL_IMMEDIATE) != 0 ? kFlagImmediate : 0;
    begin_message(ep, d, kLineWrite, flags, total);
    ep.tx.message.handle = d->DS[0].Remote.Handle;
    ep.tx.message.address = d->DS[0].Remote.Data.AddressBits;
    return Step::done;
}

bool take_served_write(Endpoint& ep, const Line& line, uint32_t meta) {
    IncomingMessage& m = ep.rx.message;
    const RemoteRange where = read_payload<RemoteRange>(line);
    const uint32_t n = length_in(meta), total = read_extra(line);
    if (m.kind != IncomingMessage::none || n > total || total > ep.vi->max_transfer ||
        (n == 0 && total != 0) || (flags_in(meta) & kFlagBlocks) == 0)
        return protocol_violation(ep);
    const std::byte* from = payload_of(ep, line, kFlagBlocks, n, where.unit);
    if (from == nullptr) return false;
    m.flags = flags_in(meta);
    m.immediate = line.immediate;
    m.total = total;
    m.remaining = total - n;
    m.handle = where.handle;
    m.address = where.address;
    const bool permitted =
        ep.vi->traits.rdma_write != 0 &&
        range_permitted(ep, ep.rx.own->busy_recv, m.handle, m.address, total, kRegionRdmaWrite);
    if (!permitted) {
        if (!refuse_write(ep, m.flags, m.immediate)) return false;
        if (m.remaining != 0) m.kind = IncomingMessage::discarded;
        return true;
    }
    m.kind = IncomingMessage::into_memory;
    if (n != 0 && !place_served(ep, from, n)) return false;
    if (m.remaining != 0) return true;
    const bool refused = m.kind == IncomingMessage::discarded;
    m.kind = IncomingMessage::none;
    return refused || finish_served_write(ep);
}

bool place_served(Endpoint& ep, const std::byte* from, uint32_t n) {
    IncomingMessage& m = ep.rx.message;
    auto* to = reinterpret_cast<std::byte*>(m.address);
    const bool placed = with_region(ep, ep.rx.own->busy_recv, m.handle, m.address, n, kRegionRdmaWrite,
                                    [&] { return write_if_accessible(to, from, n); });
    m.address += n;
    if (placed) return true;
    // The region went away under the message, or its memory; what follows is dropped (spec/reliability 7:
    // bytes already written stay).
    if (!refuse_write(ep, m.flags, m.immediate)) return false;
    m.kind = IncomingMessage::discarded;
    return true;
}

bool finish_served_write(Endpoint& ep) {
    IncomingMessage& m = ep.rx.message;
    if ((m.flags & kFlagImmediate) != 0) {
        WorkQueue& q = ep.vi->recv;
        if (!q.has_untaken()) return protocol_violation(ep);
        ++q.taken;
        close_receive(ep, VIP_STATUS_OP_REMOTE_RDMA_WRITE,
                      kFlagImmediate | (ep.rx.acknowledged ? kFlagAck : 0), m.immediate, m.total);
    } else if (ep.rx.acknowledged) {
        acknowledge(ep);
    }
    return true;
}

// ---- RDMA read and atomic operations: the initiator asks, the target answers through its own lane
// -----------------------------------

namespace {

// The line reserved asks for what `total`, `status` and tx.rdma.read.cursor say.
Step ask_to_serve(Endpoint& ep, uint32_t operation, uint32_t total, uint32_t status) {
    Tx& tx = ep.tx;
    tx.rdma.read.active = true;
    tx.rdma.read.position = ep.vi->send.taken++;
    tx.rdma.read.total = total;
    tx.rdma.read.status = status;
    tx.outstanding[tx.rdma.read.position & ep.vi->send.mask] =
        Outstanding{0, status, total, Outstanding::waits_for_read, After::nothing};
    update_fast(ep);
    update_attention(ep);
    publish_line(ep, operation, 0, 0);
    tell_event(ep, kEventServe);
    return Step::done;
}

}  // namespace

Step begin_served_read(Endpoint& ep, VIP_DESCRIPTOR* d, uint32_t total) {
    Tx& tx = ep.tx;
    if (!reserve_line(ep)) return tx.stopped ? Step::stopped : Step::waits;
    Line& line = next_line(ep);
    const RemoteRange where{0, d->DS[0].Remote.Handle, d->DS[0].Remote.Data.AddressBits};
    __builtin_memcpy(line.payload, &where, sizeof where);
    line.extra = total;
    tx.rdma.read.cursor.begin(d, total, ep.vi->regions, ep.vi->ptag);
    return ask_to_serve(ep, kLineRead, total, VIP_STATUS_OP_RDMA_READ);
}

// The operands have been checked. What follows in the queue waits for the answer, so the order holds also where other
// RDMA goes without help.
Step begin_served_atomic(Endpoint& ep, VIP_DESCRIPTOR* d, uint32_t total, uint32_t width) {
    Tx& tx = ep.tx;
    if (!reserve_line(ep)) return tx.stopped ? Step::stopped : Step::waits;
    AtomicRequest request{d->DS[0].Remote.Handle, width, d->DS[0].Remote.Data.AddressBits,
                          is_compare_swap(d->CS.Control) ? 1u : 0u, {0, 0}};
    __builtin_memcpy(request.operands, read_segment(d->DS[1].Local).bytes(), total);
    __builtin_memcpy(next_line(ep).payload, &request, sizeof request);
    tx.rdma.read.cursor.begin(d, width, ep.vi->regions, ep.vi->ptag);  // the first operand becomes the old value
    return ask_to_serve(ep, kLineAtomic, total, kStatusAtomic);
}

bool take_read_request(Endpoint& ep, const Line& line) {
    const RemoteRange where = read_payload<RemoteRange>(line);
    const uint32_t total = read_extra(line);
    WorkQueue& q = ep.vi->send;
    const bool own_lock = !ep.servicing;
    if (own_lock) q.lock.lock();
    ReadReply& reply = ep.tx.rdma.reply;
    const bool sane = !reply.active && total <= ep.vi->max_transfer && !ep.rx.unreliable;
    if (sane) {
        reply.active = true;
        reply.atomic = false;
        reply.handle = where.handle;
        reply.address = where.address;
        reply.total = total;
        reply.done = 0;
        reply.refused =
            ep.vi->traits.rdma_read == 0 ||
            !range_permitted(ep, ep.tx.own->busy_send, where.handle, where.address, total, kRegionRdmaRead);
        push_sends(ep);
    }
    if (own_lock) q.lock.unlock();
    return sane || protocol_violation(ep);
}

bool take_atomic_request(Endpoint& ep, const Line& line) {
    auto request = read_payload<AtomicRequest>(line);
    const uint32_t width = request.width;
    WorkQueue& q = ep.vi->send;
    const bool own_lock = !ep.servicing;
    if (own_lock) q.lock.lock();
    ReadReply& reply = ep.tx.rdma.reply;
    const bool sane = !reply.active && (width == 4 || width == 8) && request.address % width == 0 &&
                      ep.rx.message.kind == IncomingMessage::none && !ep.rx.unreliable;
    if (sane) {
        auto* operands = reinterpret_cast<std::byte*>(request.operands);
        const auto change = [&] {
            if (!can_write(reinterpret_cast<void*>(request.address), width)) return false;
            width == 4 ? change_word<uint32_t>(request.address, operands, request.swaps != 0)
                       : change_word<uint64_t>(request.address, operands, request.swaps != 0);
            return true;
        };
        reply.refused = ep.vi->traits.rdma_read == 0 || ep.vi->traits.rdma_write == 0 ||
                        !with_region(ep, ep.tx.own->busy_send, request.handle, request.address, width,
                                     kRegionRdmaWrite | kRegionRdmaRead, change);
        reply.active = reply.atomic = true;
        reply.handle = request.handle;
        reply.address = request.address;
        reply.word = request.operands[0];
        reply.total = width;
        reply.done = 0;
        push_sends(ep);
    }
    if (own_lock) q.lock.unlock();
    return sane || protocol_violation(ep);
}

Step push_reply(Endpoint& ep) {
    Tx& tx = ep.tx;
    ReadReply& reply = tx.rdma.reply;
    while (!reply.refused) {
        const uint32_t left = reply.total - reply.done;
        const uint32_t most = std::min(tx.blocks.longest, kOnePiece);
        const uint32_t n = std::min(left, most);
        uint32_t unit = 0, unit_after = tx.blocks.next;
        if (!reserve_line(ep) || (n != 0 && !reserve_units(ep, n, &unit, &unit_after)))
            return tx.stopped ? Step::stopped : Step::waits;
        std::byte* to = tx.blocks.at + size_t{unit} * kUnitBytes;
        const auto* from = reinterpret_cast<const std::byte*>(reply.address + reply.done);
        if (reply.atomic) {
            __builtin_memcpy(to, &reply.word, n);
        } else if (n != 0 && !with_region(ep, tx.own->busy_send, reply.handle, reply.address + reply.done, n,
                                   kRegionRdmaRead, [&] { return read_if_accessible(to, from, n); })) {
            reply.refused = true;
            break;
        }
        tx.blocks.next = unit_after;
        const BlockPlace where{unit};
        __builtin_memcpy(next_line(ep).payload, &where, sizeof where);
        publish_line(ep, kLineReadData, kFlagBlocks, n);
        reply.done += n;
        if (reply.done == reply.total) {
            reply.active = false;
            return Step::done;
        }
    }
    if (!reserve_line(ep)) return tx.stopped ? Step::stopped : Step::waits;
    const uint32_t wanted = reply.atomic ? kRegionRdmaRead | kRegionRdmaWrite : kRegionRdmaRead;
    const Cause cause = explain_own_target(ep, reply.handle, reply.address, reply.total, wanted);
    tell_cause(ep, cause);
    publish_line(ep, kLineReadRefused, 0, 0);
    reply.active = false;
    tx.stopped = true;
    update_fast(ep);
    break_by_line(ep, VIP_ERROR_RDMAR_PROT, true, VIP_STATUS_OP_RDMA_READ, cause);
    return Step::stopped;
}

bool take_read_data(Endpoint& ep, const Line& line, uint32_t meta) {
    const uint32_t n = length_in(meta);
    const BlockPlace where = read_payload<BlockPlace>(line);
    const bool refused = operation_in(meta) == kLineReadRefused;
    const std::byte* from = refused ? line.payload : payload_of(ep, line, kFlagBlocks, n, where.unit);
    if (from == nullptr) return false;

    WorkQueue& q = ep.vi->send;
    const bool own_lock = !ep.servicing;
    if (own_lock) q.lock.lock();
    OutgoingRead& read = ep.tx.rdma.read;
    bool sane = read.active && n <= read.cursor.remaining && (refused || n != 0 || read.total == 0);
    bool lost = false;  // the program has unmapped what it reads into
    if (sane && !refused) {
        const auto scatter_to = ep.servicing ? scatter_accessible : scatter;
        const bool placed = scatter_to(read.cursor, from, n) == n;
        lost = !placed && ep.servicing;
        sane = placed || lost;
    }
    if (sane) {
        read.active = !lost && !refused && read.cursor.remaining != 0;
        update_attention(ep);
        if (lost) {
            ep.vi->cause_of(q).cause.kind = CauseKind::changed_or_unmapped;
            finish(ep, read.position, read.status | VIP_STATUS_PROTECTION_ERROR, 0,
                   After::break_silently);
        } else if (refused) {
            ep.vi->cause_of(q) = {cause_told(ep), true};
            finish(ep, read.position, read.status | VIP_STATUS_RDMA_PROT_ERROR, 0,
                   After::break_silently);
        } else if (!read.active) {
            update_fast(ep);
            finish(ep, read.position, read.status, read.total, After::nothing);
            push_sends(ep);
        }
    }
    if (own_lock) q.lock.unlock();
    return sane || protocol_violation(ep);
}

}  // namespace viaduct::paramnet
