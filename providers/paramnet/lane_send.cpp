// SPDX-License-Identifier: BSD-2-Clause
// The sending half of a lane: from the send queue into lines and blocks, and completions in posting order.
// What is short and usual goes by lane_send_short.cpp. Everything here runs with vi.send.lock held.
#include <algorithm>

#include "core/clock/clock.hpp"
#include "core/trace/probe.hpp"
#include "providers/paramnet/lanes.hpp"
#include "providers/paramnet/nic.hpp"
#include "providers/paramnet/own_memory.hpp"
#include "providers/paramnet/progress.hpp"

namespace viaduct::paramnet {

namespace {

constexpr int64_t kStuckNs = 1'000'000;  // a lane full for so long: the peer's application computes
constexpr uint32_t kLooksPerTime = 64;   // attempts between two looks at the clock
constexpr uint32_t kVerdictBits =
    VIP_STATUS_REMOTE_DESC_ERROR | VIP_STATUS_RDMA_PROT_ERROR | VIP_STATUS_TRANSPORT_ERROR;

bool reliable(const Endpoint& ep) { return ep.vi->traits.reliability != VIP_SERVICE_UNRELIABLE; }

void complete(Endpoint& ep, uint32_t status, uint32_t length, After after) {
    complete_head(ep.vi->send, status, length);
    if (after != After::nothing) break_connection(ep, VIP_ERROR_CONN_LOST, after == After::break_lost);
}

// Completes what is decided, in posting order.
void complete_in_order(Endpoint& ep) {
    Tx& tx = ep.tx;
    WorkQueue& q = ep.vi->send;
    uint32_t awaited = 0;
    while (q.completed != q.taken) {
        const Outstanding& o = tx.outstanding[q.completed & q.mask];
        if (o.state == Outstanding::sending || o.state == Outstanding::waits_for_read) break;
        if (o.state == Outstanding::waits_for_ack && static_cast<int32_t>(tx.acks_seen - o.ack_at) < 0) {
            awaited = o.ack_at << 1 | 1;
            break;
        }
        const After after = o.after;
        complete(ep, o.status, o.length, after);
        if (after != After::nothing) break;
    }
    ep.awaits_acks.store(awaited, std::memory_order_relaxed);
}

// Reads how far the peer has taken our lines. False: no correct peer would say that.
bool refresh_room(Endpoint& ep) {
    Tx& tx = ep.tx;
    const uint64_t consumed = tx.peer->consumed.load(std::memory_order_acquire);
    const auto lines = static_cast<uint32_t>(consumed);
    const auto units = static_cast<uint32_t>(consumed >> 32);
    if (lines - tx.lines_consumed > tx.next - tx.lines_consumed ||
        units - tx.units_consumed > tx.unit_next - tx.units_consumed) {
        tx.stopped = true;
        update_fast(ep);
        break_connection(ep, VIP_ERROR_CONN_LOST, true);
        return false;
    }
    tx.lines_consumed = lines;
    tx.units_consumed = units;
    tx.limit = lines + kLines;
    return true;
}

// About four fragments a message, so that the receiver begins to copy early, and none so small that lines
// rather than bytes take the time.
uint32_t fragment_bytes(const Tx& tx, uint32_t total) {
    const uint32_t quarter = (total / 4 + kUnitBytes - 1) & ~(kUnitBytes - 1);
    return std::clamp(quarter, kMinFragment, tx.block_bytes);
}

// Sends the fragments of the message under way for which there is room.
Step continue_message(Endpoint& ep) {
    Tx& tx = ep.tx;
    OutgoingMessage& m = tx.message;
    const uint32_t fragment = fragment_bytes(tx, m.total);
    const auto copy = ep.servicing ? gather_where_mapped : m.streaming ? gather_streaming : gather;
    while (m.cursor.remaining != 0 || m.first) {
        const uint32_t n = m.cursor.remaining < fragment ? m.cursor.remaining : fragment;
        uint32_t unit = 0, unit_after = tx.unit_next;
        if (!reserve_line(ep) || (n != 0 && !reserve_units(ep, n, &unit, &unit_after)))
            return tx.stopped ? Step::stopped : Step::waits;
        Line& line = next_line(ep);
        const uint32_t timed = m.first && m.trial != 0 ? mark_timed(line, m.trial, &m.begun) : 0;
        if (n != 0 && copy(m.cursor, tx.blocks + size_t{unit} * kUnitBytes, n) != n) {
            // The application changed the descriptor while it was ours (vipl-semantics §2.6), or unmapped the
            // memory: the rest is void.
            m.active = false;
            const uint32_t error = ep.servicing ? VIP_STATUS_PROTECTION_ERROR : VIP_STATUS_FORMAT_ERROR;
            finish(ep, m.position, send_status_op(m.operation == kLineWrite ? 1 : 0) | error, 0,
                   After::break_silently);
            return Step::stopped;
        }
        tx.unit_next = unit_after;
        if (unit_after >= kUnits) tx.steady = true;
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
    Tx& tx = ep.tx;
    WorkQueue& q = ep.vi->send;
    const Step receive = reserve_receive(ep);
    if (receive == Step::stopped) {
        finish_without_receive(ep, q.taken++, VIP_STATUS_OP_SEND, total);
        return Step::done;
    }
    if (receive == Step::waits) return Step::waits;
    const uint32_t flags = (d->CS.Control & VIP_CONTROL_IMMEDIATE) != 0 ? kFlagImmediate : 0;
    if (total > kInlineBytes) return begin_long(ep, d, flags, total);
    if (!reserve_line(ep)) return tx.stopped ? Step::stopped : Step::waits;
    Line& line = next_line(ep);
    SegmentCursor cursor;
    cursor.begin(d, total, ep.vi->regions, ep.vi->ptag);
    uint32_t n = 0;
    if (ep.servicing) [[unlikely]] {
        n = gather_where_mapped(cursor, line.payload, total);
        if (n != total) {
            finish(ep, q.taken++, VIP_STATUS_OP_SEND | VIP_STATUS_PROTECTION_ERROR, 0,
                   reliable(ep) ? After::break_silently : After::nothing);
            return Step::done;
        }
    } else {
        n = gather(cursor, line.payload, total);
    }
    line.immediate = d->CS.ImmediateData;
    line.extra = own_posted(tx);
    publish_line(ep, kLineSend, flags | (tx.acknowledged ? kFlagAck : 0), n);
    ++tx.used;
    if (tx.acknowledged) {
        finish_on_ack(ep, q.taken++, VIP_STATUS_OP_SEND, total);
    } else {
        finish(ep, q.taken++, VIP_STATUS_OP_SEND, total, After::nothing);
    }
    return Step::done;
}

// The fault plan's verdict on one message; what it did on the way is counted.
Fate ask_network(Endpoint& ep, FaultModel& model) {
    const FaultCounters before = model.counters();
    const Fate fate = model.decide(reliable(ep));
    const FaultCounters& after = model.counters();
    ViStats& stats = ep.vi->stats;
    stats.count(ViCount::retries, after.retransmitted - before.retransmitted);
    stats.count(ViCount::drops, after.duplicated - before.duplicated);
    return fate;
}

// What the modelled network does with the head message. done: it arrives. waits: delayed. stopped: it does
// not arrive, and its descriptor has been decided.
Step pass_faults(Endpoint& ep, VIP_DESCRIPTOR* d, uint32_t total) {
    Tx& tx = ep.tx;
    const uint32_t operation = operation_of(d);
    if (tx.faults && tx.faults->plan().delay_us != 0) {
        const int64_t now = now_ns();
        if (tx.held_until == 0) {
            tx.held_until = now + int64_t{tx.faults->plan().delay_us} * 1000;
            tx.faults->count_delay();
        }
        if (now < tx.held_until) return Step::waits;
    }
    Fate fate = tx.faults ? ask_network(ep, *tx.faults) : Fate::arrives;
    if (tx.link_down) fate = reliable(ep) ? Fate::failed : Fate::lost;
    tx.held_until = 0;
    if (fate == Fate::arrives) {
        tx.fate_decided = true;
        return Step::done;
    }
    const uint32_t position = ep.vi->send.taken++;
    const uint32_t status = send_status_op(operation);
    ep.vi->stats.count(ViCount::drops);
    if (fate == Fate::failed) {
        finish(ep, position, status | VIP_STATUS_TRANSPORT_ERROR, 0, After::break_lost);
    } else {
        // §6.2: an unreliable message is lost without a trace, but for a damaged RDMA write (§8 RDMAW_DATA).
        if (fate == Fate::damaged && operation == VIP_CONTROL_OP_RDMAWRITE)
            tell_event(ep, kEventWriteDamaged);
        finish(ep, position, status, total, After::nothing);
    }
    return Step::stopped;
}

// The link carries so many bytes a second, of all VIs of this NIC together. A message holds it from when it
// is free, and goes when it has passed. One that stood behind another was there when the link became free,
// even if nobody looked at that moment; but nobody is excused for more than a millisecond.
Step pass_link(Endpoint& ep, uint32_t total) {
    constexpr int64_t kExcused = 1'000'000;
    Tx& tx = ep.tx;
    const int64_t now = now_ns();
    if (tx.on_link_until == 0) {
        const double ns = static_cast<double>(total) * 1e9 / static_cast<double>(ep.nic->settings.link_rate);
        const int64_t there = tx.link_held == 0 ? now : std::max(tx.link_held, now - kExcused);
        std::atomic<int64_t>& link_free = ep.nic->link_free;
        int64_t free_from = link_free.load(std::memory_order_relaxed);
        int64_t until;
        do {
            until = std::max(there, free_from) + static_cast<int64_t>(ns);
        } while (!link_free.compare_exchange_weak(free_from, until, std::memory_order_relaxed));
        tx.on_link_until = until;
    }
    if (now < tx.on_link_until) return Step::waits;
    tx.link_held = tx.on_link_until;
    tx.on_link_until = 0;
    tx.link_passed = true;
    return Step::done;
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
        // §6.2: a local error at a reliable level ends the connection, an unreliable one goes on.
        finish(ep, q.taken++, send_status_op(operation_of(d)) | error, 0,
               reliable(ep) ? After::break_silently : After::nothing);
        return Step::done;
    }
    if ((tx.faults || tx.link_down) && !tx.fate_decided) [[unlikely]] {
        const Step passed = pass_faults(ep, d, total);
        if (passed != Step::done) return passed == Step::stopped ? Step::done : passed;
    }
    if (tx.paced && !tx.link_passed) [[unlikely]] {
        const Step passed = pass_link(ep, total);
        if (passed != Step::done) return passed;
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
    if (step == Step::done) tx.fate_decided = tx.link_passed = false;
    return step;
}

Step push_while_room(Endpoint& ep) {
    Tx& tx = ep.tx;
    WorkQueue& q = ep.vi->send;
    if (!tx.peer_started) {
        // The acceptor may send before the requester's VipConnectRequest has returned (vipl-compat C14).
        if (tx.peer->posted.load(std::memory_order_acquire) >> 32 == 0) return Step::waits;
        tx.peer_started = true;
        tx.needs_fence = tx.peer->needs_fence.load(std::memory_order_relaxed) != 0;
        install_ways(ep);
        update_fast(ep);
    }
    for (;;) {
        if (tx.stopped) return Step::stopped;
        Step step;
        if (tx.message.active) {
            step = continue_message(ep);
        } else if (tx.reply.active) {
            step = push_reply(ep);
        } else if (q.has_untaken() && !tx.read.active) {
            step = begin_next(ep);
        } else {
            tx.link_held = 0;
            return Step::done;
        }
        if (step != Step::done) return step;
    }
}

void enter_backlog(Endpoint& ep) {
    ep.tx.backlog = true;
    ep.vi->stats.count(ViCount::backlogs);
    VIADUCT_PROBE2(backlog_begin, ep.vi, ep.tx.next);
    ep.send_attention.store(1, std::memory_order_relaxed);
    ep.tx.own->space_wanted.store(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the fence in publish_consumed
    update_fast(ep);
    note_backlog(*ep.nic);
}

void leave_backlog(Endpoint& ep) {
    ep.tx.backlog = false;
    VIADUCT_PROBE2(backlog_end, ep.vi, ep.tx.next);
    ep.tx.stuck_since = 0;
    ep.send_attention.store(0, std::memory_order_relaxed);
    ep.tx.own->space_wanted.store(0, std::memory_order_relaxed);
    update_fast(ep);
    ep.nic->backlogs.fetch_sub(1, std::memory_order_relaxed);
}

// A lane that stays full means that the peer's application does not poll: its progress thread takes over.
void note_stuck(Endpoint& ep) {
    Tx& tx = ep.tx;
    const uint32_t attempts = ep.push_attempts.load(std::memory_order_relaxed) + 1;
    const bool moved = tx.stuck_at != tx.next;
    tx.stuck_at = tx.next;
    if (moved || tx.stuck_since == 0) {
        tx.stuck_since = now_ns();
        ep.push_attempts.store(attempts, std::memory_order_relaxed);
        return;
    }
    ep.push_attempts.store(attempts, std::memory_order_relaxed);
    if (attempts % kLooksPerTime != 0) return;
    const int64_t now = now_ns();
    if (now - tx.stuck_since < kStuckNs) return;
    tx.stuck_since = now;
    ep.vi->stats.count(ViCount::peer_calls);
    call_peer(ep);
}

// The same for a message that is not taken: it must arrive without a call of the target's application.
void note_unacked(Endpoint& ep) {
    Tx& tx = ep.tx;
    const uint32_t looks = ++tx.ack_looks;
    const Outstanding& oldest = tx.outstanding[ep.vi->send.completed & ep.vi->send.mask];
    // What is to be fetched would be done already, had it gone through the ring: a program that looks seldom
    // must not wait for many looks.
    const bool early = oldest.fetched && (looks & (looks - 1)) == 0;
    if (!early && looks % kLooksPerTime != 0) return;
    const int64_t now = now_ns();
    if (tx.unacked_since == 0) tx.unacked_since = now;
    if (oldest.fetched && now - tx.unacked_since > Ways::patience_ns(oldest.length))
        tx.ways.not_fetched(tx.acks_seen);
    if (now - tx.unacked_since < kStuckNs) return;
    tx.unacked_since = now;
    ep.vi->stats.count(ViCount::peer_calls);
    call_peer(ep);
}

}  // namespace

void push_sends(Endpoint& ep) {
    Tx& tx = ep.tx;
    if (!ep.connected) return;
    Step step = push_while_room(ep);
    if (step == Step::waits && !tx.backlog) {
        enter_backlog(ep);
        step = push_while_room(ep);
    }
    if (step == Step::waits) {
        note_stuck(ep);
    } else if (tx.backlog) {
        leave_backlog(ep);
    }
}

void collect_acks(Endpoint& ep) {
    Tx& tx = ep.tx;
    WorkQueue& q = ep.vi->send;
    if (!ep.connected || q.completed == q.taken) return;
    const uint64_t placed = tx.peer->placed.load(std::memory_order_acquire);
    const auto count = static_cast<uint32_t>(placed);
    if (count - tx.acks_seen > tx.acks_wanted - tx.acks_seen) {
        tx.stopped = true;
        update_fast(ep);
        break_connection(ep, VIP_ERROR_CONN_LOST, true);
        return;
    }
    if (count != tx.acks_seen) {
        tx.acks_seen = count;
        tx.unacked_since = 0;
        tx.ack_looks = 0;
        complete_in_order(ep);
    } else if (ep.awaits_acks.load(std::memory_order_relaxed) != 0) {
        note_unacked(ep);
    }
    const auto verdict = static_cast<uint32_t>(placed >> 32) & kVerdictBits;
    if (verdict == 0 || q.completed == q.taken) return;
    const Outstanding& failed = tx.outstanding[q.completed & q.mask];
    uint32_t status = failed.status;
    if (failed.state == Outstanding::sending && tx.acks_wanted == count && tx.message.active) {
        // Refused while its fragments are on their way: it would have been the next one.
        status = tx.message.operation == kLineWrite ? VIP_STATUS_OP_RDMA_WRITE : VIP_STATUS_OP_SEND;
        tx.message.active = false;
    } else if (failed.state != Outstanding::waits_for_ack || failed.ack_at != count + 1) {
        return;
    }
    tx.stopped = true;
    update_fast(ep);
    complete(ep, status | verdict, 0, After::break_silently);
}

bool reserve_line(Endpoint& ep) {
    if (ep.tx.next != ep.tx.limit) [[likely]]
        return true;
    return refresh_room(ep) && ep.tx.next != ep.tx.limit;
}

bool reserve_units(Endpoint& ep, uint32_t bytes, uint32_t* unit, uint32_t* unit_after) {
    Tx& tx = ep.tx;
    const uint32_t wanted = units_for(bytes);
    const uint32_t offset = tx.unit_next % kUnits;
    // Payload is contiguous: what does not fit before the end of the area begins at its start.
    const uint32_t skipped = offset + wanted > kUnits ? kUnits - offset : 0;
    const uint32_t after = tx.unit_next + skipped + wanted;
    if (after - tx.units_consumed > kUnits && (!refresh_room(ep) || after - tx.units_consumed > kUnits))
        return false;
    *unit = skipped != 0 ? 0 : offset;
    *unit_after = after;
    return true;
}

Step reserve_receive(Endpoint& ep) {
    Tx& tx = ep.tx;
    if (tx.used != tx.credits || take_heard_credits(ep)) [[likely]]
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

void finish(Endpoint& ep, uint32_t position, uint32_t status, uint32_t length, After after) {
    Tx& tx = ep.tx;
    WorkQueue& q = ep.vi->send;
    if (after != After::nothing) {
        tx.stopped = true;
        update_fast(ep);
    }
    Outstanding& o = tx.outstanding[position & q.mask];
    o = Outstanding{0, status, length, Outstanding::ready, after};
    if (q.completed == position) complete_in_order(ep);
}

void finish_on_ack(Endpoint& ep, uint32_t position, uint32_t status, uint32_t length) {
    Tx& tx = ep.tx;
    tx.outstanding[position & ep.vi->send.mask] =
        Outstanding{++tx.acks_wanted, status, length, Outstanding::waits_for_ack, After::nothing};
    if (ep.awaits_acks.load(std::memory_order_relaxed) == 0)
        ep.awaits_acks.store(tx.acks_wanted << 1 | 1, std::memory_order_relaxed);
}

void finish_without_receive(Endpoint& ep, uint32_t position, uint32_t operation, uint32_t length) {
    ep.vi->stats.count(ViCount::no_receive);
    VIADUCT_PROBE2(no_receive, ep.vi, length);
    tell_event(ep, kEventNoReceive);
    switch (ep.vi->traits.reliability) {
        case VIP_SERVICE_UNRELIABLE:  // dropped, the connection stays
            finish(ep, position, operation, length, After::nothing);
            break;
        case VIP_SERVICE_RELIABLE_DELIVERY:  // the network had accepted it already
            finish(ep, position, operation, length, After::break_lost);
            break;
        default:
            finish(ep, position, operation | VIP_STATUS_REMOTE_DESC_ERROR, 0, After::break_silently);
            break;
    }
}

void tell_event(Endpoint& ep, EventKind kind) {
    std::atomic<uint32_t>& count = ep.tx.own->events[kind];
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    call_peer(ep);
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
    m.streaming = operation == kLineWrite && tx.ways.next(total, false, false).way == Way::streaming;
    m.cursor.begin(d, total, ep.vi->regions, ep.vi->ptag);
    tx.outstanding[m.position & q.mask].state = Outstanding::sending;
    if (operation == kLineSend || (flags & kFlagImmediate) != 0) ++tx.used;
}

void poll_send(ViCore& vi) {
    Endpoint& ep = *vi.endpoint;
    collect_acks(ep);
    if (ep.tx.backlog) push_sends(ep);
}

}  // namespace viaduct::paramnet
