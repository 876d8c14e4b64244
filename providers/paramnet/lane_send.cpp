// SPDX-License-Identifier: BSD-2-Clause
// The sending half of a lane: from the send queue into lines and blocks. Short messages of the frequent forms are in
// lane_send_short.cpp, completions in send_finish.cpp. Everything here runs with vi.send.lock held.
#include <algorithm>

#include "core/clock/clock.hpp"
#include "core/trace/probe.hpp"
#include "providers/paramnet/nic.hpp"
#include "providers/paramnet/own_memory.hpp"
#include "providers/paramnet/progress.hpp"
#include "providers/paramnet/rdma.hpp"
#include "providers/paramnet/rendezvous.hpp"
#include "providers/paramnet/send.hpp"

namespace viaduct::paramnet {

namespace {

// Reads how far the peer has taken our lines. False: no correct peer would say that.
bool refresh_room(Endpoint& ep) {
    Tx& tx = ep.tx;
    const uint64_t consumed = tx.peer->consumed.load(std::memory_order_acquire);
    const auto lines = static_cast<uint32_t>(consumed);
    const auto units = static_cast<uint32_t>(consumed >> 32);
    if (lines - tx.lines_consumed > tx.next - tx.lines_consumed ||
        units - tx.blocks.consumed > tx.blocks.next - tx.blocks.consumed) {
        tx.stopped = true;
        update_fast(ep);
        break_connection(ep, VIP_ERROR_CONN_LOST, true, CauseKind::protocol);
        return false;
    }
    tx.lines_consumed = lines;
    tx.blocks.consumed = units;
    tx.limit = lines + kLines;
    return true;
}

// Several fragments a message, so that the receiver begins to copy early, and none so small that lines rather
// than bytes take the time: four up to 64 KiB, eight from 128 KiB up, since each costs far processors a round
// trip.
uint32_t fragment_bytes(const Tx& tx, const OutgoingMessage& m) {
    if (m.total <= kOnePiece && !m.streaming) return tx.blocks.longest;
    const uint32_t part = std::max(std::min(m.total / 4, kOnePiece), m.total / 8);
    return std::clamp((part + kUnitBytes - 1) & ~(kUnitBytes - 1), kMinFragment, tx.blocks.longest);
}

// Sends the fragments of the message under way for which there is room.
Step continue_message(Endpoint& ep) {
    Tx& tx = ep.tx;
    OutgoingMessage& m = tx.message;
    const uint32_t fragment = fragment_bytes(tx, m);
    const auto copy = ep.servicing ? gather_accessible : m.streaming ? gather_streaming : gather;
    while (m.cursor.remaining != 0 || m.first) {
        const uint32_t n = m.cursor.remaining < fragment ? m.cursor.remaining : fragment;
        uint32_t unit = 0, unit_after = tx.blocks.next;
        if (!reserve_line(ep) || (n != 0 && !reserve_units(ep, n, &unit, &unit_after)))
            return tx.stopped ? Step::stopped : Step::waits;
        Line& line = next_line(ep);
        const uint32_t timed = m.first && m.trial != 0 ? mark_probe(line, kProbeMethod, m.trial, &m.begun) : 0;
        if (n != 0 && copy(m.cursor, tx.blocks.at + size_t{unit} * kUnitBytes, n) != n) {
            // The application changed the descriptor while it was ours (spec/descriptors 2.6), or unmapped
            // the memory: the rest is void.
            m.active = false;
            ep.vi->cause_of(ep.vi->send).cause.kind = CauseKind::changed_or_unmapped;
            const uint32_t error = ep.servicing ? VIP_STATUS_PROTECTION_ERROR : VIP_STATUS_FORMAT_ERROR;
            finish(ep, m.position, send_status_op(m.operation == kLineWrite ? 1 : 0) | error, 0,
                   After::break_silently);
            return Step::stopped;
        }
        tx.blocks.next = unit_after;
        if (unit_after >= kUnits) tx.blocks.steady = true;
        line.immediate = m.immediate;
        line.extra = m.total;
        if (m.operation == kLineWrite && m.first) {
            const RemoteRange where{unit, m.handle, m.address};
            __builtin_memcpy(line.payload, &where, sizeof where);
        } else {
            const BlockPlace where{unit};
            __builtin_memcpy(line.payload, &where, sizeof where);
        }
        const uint32_t operation = m.first ? m.operation : uint32_t{kLineMore};
        const bool last = m.cursor.remaining == 0;
        m.first = false;
        publish_line(ep, operation, m.flags | kFlagBlocks | timed | (last && tx.acknowledged ? kFlagAck : 0),
                     n);
    }
    m.active = false;
    if (m.trial != 0) [[unlikely]]
        note_sent(ep, m);
    const uint32_t status = m.operation == kLineWrite ? VIP_STATUS_OP_RDMA_WRITE : VIP_STATUS_OP_SEND;
    if (m.operation == kLineWrite) tell_event(ep, kEventServe);  // needs no call of the target's application
    if (tx.acknowledged) {
        finish_on_ack(ep, m.position, status, m.total);
    } else {
        finish(ep, m.position, status, m.total, After::nothing);
    }
    return Step::done;
}

Step begin_send(Endpoint& ep, VIP_DESCRIPTOR* d, uint32_t total) {
    const Step receive = reserve_receive(ep);
    if (receive == Step::stopped) {
        finish_without_receive(ep, ep.vi->send.taken++, VIP_STATUS_OP_SEND, total);
        return Step::done;
    }
    if (receive == Step::waits) return Step::waits;
    if (total <= kInlineBytes) return begin_short(ep, d, total);
    return begin_long(ep, d, (d->CS.Control & VIP_CONTROL_IMMEDIATE) != 0 ? kFlagImmediate : 0, total);
}

// Takes the descriptor at the head as far as possible.
Step begin_next(Endpoint& ep) {
    Tx& tx = ep.tx;
    WorkQueue& q = ep.vi->send;
    VIP_DESCRIPTOR* d = q.next_untaken();
    uint64_t sum = 0;
    const uint32_t error = check_send(*ep.vi, d, &sum);
    const auto total = static_cast<uint32_t>(sum);
    if (error != 0) [[unlikely]] {
        leave_network(ep);  // it may have been spoilt on its way
        // spec/reliability 6.2: a local error at a reliable level ends the connection, an unreliable one goes on.
        finish(ep, q.taken++, sent_status_op(d->CS.Control) | error, 0,
               reliable(ep) ? After::break_silently : After::nothing);
        return Step::done;
    }
    if (tx.network.faults || tx.network.link_down || tx.network.paced) [[unlikely]] {
        const Step passed = pass_network(ep, d, total);
        if (passed != Step::done) return passed == Step::stopped ? Step::done : passed;
    }
    Step step;
    switch (operation_of(d)) {
        case VIP_CONTROL_OP_RDMAWRITE:
            step = begin_write(ep, d, total);
            break;
        case VIP_CONTROL_OP_RDMAREAD:
            step = begin_read(ep, d, total);
            break;
        case VIP_CONTROL_OP_RESERVED:  // check_send has let pass no other than an atomic operation
            step = begin_atomic(ep, d, total);
            break;
        default:
            step = begin_send(ep, d, total);
            break;
    }
    if (step == Step::done) tx.network.faults_passed = tx.network.link_passed = false;
    return step;
}

Step push_while_room(Endpoint& ep) {
    Tx& tx = ep.tx;
    WorkQueue& q = ep.vi->send;
    if (!tx.peer_started) {
        // The acceptor may send before the requester's VipConnectRequest has returned (spec/compat C14).
        if (tx.peer->posted.load(std::memory_order_acquire) >> 32 == 0) return Step::waits;
        tx.peer_started = true;
        tx.needs_fence = tx.peer->needs_fence.load(std::memory_order_relaxed) != 0;
        install_method_tuner(ep);
        update_fast(ep);
    }
    for (;;) {
        if (tx.stopped) return Step::stopped;
        Step step;
        if (tx.message.active) {
            step = continue_message(ep);
        } else if (tx.rdma.reply.active) {
            step = push_reply(ep);
        } else if (q.has_untaken() && !tx.rdma.read.active) {
            step = begin_next(ep);
        } else {
            return Step::done;
        }
        if (step != Step::done) return step;
    }
}

void enter_backlog(Endpoint& ep) {
    ep.tx.backlog = true;
    update_attention(ep);
    ep.vi->stats.count(ViCount::backlogs);
    VIADUCT_PROBE2(backlog_begin, ep.vi, ep.tx.next);
    ep.tx.own->space_wanted.store(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the fence in publish_consumed
    update_fast(ep);
    note_backlog(*ep.nic);
}

void leave_backlog(Endpoint& ep) {
    ep.tx.backlog = false;
    VIADUCT_PROBE2(backlog_end, ep.vi, ep.tx.next);
    ep.tx.stuck.since = 0;
    update_attention(ep);
    ep.tx.own->space_wanted.store(0, std::memory_order_relaxed);
    update_fast(ep);
    ep.nic->backlogs.fetch_sub(1, std::memory_order_relaxed);
}

// What the progress thread looks at to see whether the application pushes by itself.
uint32_t note_attempt(Endpoint& ep) {
    const uint32_t attempts = ep.push_attempts.load(std::memory_order_relaxed) + 1;
    ep.push_attempts.store(attempts, std::memory_order_relaxed);
    return attempts;
}

// A lane that stays full means that the peer's application does not poll: its progress thread takes over.
void note_stuck(Endpoint& ep) {
    Tx& tx = ep.tx;
    const uint32_t attempts = note_attempt(ep);
    const bool moved = tx.stuck.at != tx.next;
    tx.stuck.at = tx.next;
    if (moved || tx.stuck.since == 0) {
        tx.stuck.since = now_ns();
        return;
    }
    if (attempts % kLooksPerTime != 0) return;
    const int64_t now = now_ns();
    if (now - tx.stuck.since < kStuckNs) return;
    tx.stuck.since = now;
    ep.vi->stats.count(ViCount::peer_calls);
    call_peer(ep);
}

}  // namespace

void push_sends(Endpoint& ep) {
    Tx& tx = ep.tx;
    tx.burst_credit = 0;
    if (!ep.connected) return;
    if (tx.network.paced) [[unlikely]]
        stamp_posts(ep);
    Step step = push_while_room(ep);
    if (step == Step::waits && !tx.backlog) {
        enter_backlog(ep);
        step = push_while_room(ep);
    }
    if (step == Step::waits) {
        if (ep.arrives_at.load(std::memory_order_relaxed) != 0)
            note_attempt(ep);  // its time has not come: no fault of the peer's
        else
            note_stuck(ep);
    } else if (tx.backlog) {
        leave_backlog(ep);
    }
}

bool reserve_line(Endpoint& ep) {
    if (ep.tx.next != ep.tx.limit) [[likely]]
        return true;
    return refresh_room(ep) && ep.tx.next != ep.tx.limit;
}

bool reserve_units(Endpoint& ep, uint32_t bytes, uint32_t* unit, uint32_t* unit_after) {
    Tx& tx = ep.tx;
    const uint32_t wanted = units_for(bytes);
    const uint32_t offset = tx.blocks.next % kUnits;
    // Payload is contiguous: what does not fit before the end of the area begins at its start.
    const uint32_t skipped = offset + wanted > kUnits ? kUnits - offset : 0;
    const uint32_t after = tx.blocks.next + skipped + wanted;
    if (after - tx.blocks.consumed > kUnits && (!refresh_room(ep) || after - tx.blocks.consumed > kUnits))
        return false;
    *unit = skipped != 0 ? 0 : offset;
    *unit_after = after;
    return true;
}

Step reserve_receive(Endpoint& ep) {
    Tx& tx = ep.tx;
    if (tx.used != tx.credits || take_new_credits(ep)) [[likely]]
        return Step::done;
    const uint64_t posted = tx.peer->posted.load(std::memory_order_acquire);
    if (posted >> 32 == 0) return Step::waits;
    tx.credits = static_cast<uint32_t>(posted);  // a wrong count harms the peer's own receives only
    ep.vi->stats.count(ViCount::credit_looks);
    ep.vi->stats.credits.store(tx.credits - tx.used, std::memory_order_relaxed);
    return tx.used != tx.credits ? Step::done : Step::stopped;
}

void publish_line(Endpoint& ep, uint32_t operation, uint32_t flags, uint32_t length) {
    Tx& tx = ep.tx;
    next_line(ep).word.store(make_word(tx.next, operation, flags, length), std::memory_order_release);
    ++tx.next;
    light_barrier();
    if (tx.needs_fence) std::atomic_thread_fence(std::memory_order_seq_cst);
    if (tx.peer->recv_mode.load(std::memory_order_relaxed) != kModePolled) ring_peer(ep);
}

void begin_message(Endpoint& ep, const VIP_DESCRIPTOR* d, uint32_t operation, uint32_t flags,
                   uint32_t total) {
    Tx& tx = ep.tx;
    WorkQueue& q = ep.vi->send;
    OutgoingMessage& m = tx.message;
    m.active = true;
    m.first = true;
    m.operation = operation;
    m.flags = flags;
    m.position = q.taken++;
    m.immediate = d->CS.ImmediateData;
    m.total = total;
    m.trial = 0;
    m.streaming = operation == kLineWrite &&
                  tx.learnt.methods.next(total, false, false, &tx.learnt.last_trial).method == Method::streaming;
    m.cursor.begin(d, total, ep.vi->regions, ep.vi->ptag);
    tx.outstanding[m.position & q.mask].state = Outstanding::sending;
    if (operation == kLineSend || (flags & kFlagImmediate) != 0) ++tx.used;
}

}  // namespace viaduct::paramnet
