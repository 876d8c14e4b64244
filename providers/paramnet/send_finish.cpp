// SPDX-License-Identifier: BSD-2-Clause
// How sends end: acknowledgements, verdicts, and completions in posting order. Everything here runs with
// vi.send.lock held.
#include "core/clock/clock.hpp"
#include "core/trace/probe.hpp"
#include "providers/paramnet/nic.hpp"
#include "providers/paramnet/send.hpp"
#include "providers/paramnet/told_cause.hpp"

namespace viaduct::paramnet {

namespace {

constexpr uint32_t kNackBits = VIP_STATUS_REMOTE_DESC_ERROR | VIP_STATUS_RDMA_PROT_ERROR | VIP_STATUS_TRANSPORT_ERROR;

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
        if (o.state == Outstanding::waits_for_ack && static_cast<int32_t>(tx.acks.seen - o.ack_at) < 0) {
            awaited = o.ack_at << 1 | 1;
            break;
        }
        const After after = o.after;
        complete(ep, o.status, o.length, after);
        if (after != After::nothing) break;
    }
    ep.awaits_acks.store(awaited, std::memory_order_relaxed);
}

// A message that is not taken must arrive without a call of the target's application.
void note_unacked(Endpoint& ep) {
    Tx& tx = ep.tx;
    const uint32_t looks = ++tx.acks.looks;
    const Outstanding& oldest = tx.outstanding[ep.vi->send.completed & ep.vi->send.mask];
    // What is to be fetched would be done already, if it were sent through the ring: a program that looks seldom
    // must not wait for many looks.
    const bool early = oldest.fetched && (looks & (looks - 1)) == 0;
    if (!early && looks % kLooksPerTime != 0) return;
    const int64_t now = now_ns();
    if (tx.acks.unacked_since == 0) tx.acks.unacked_since = now;
    if (oldest.fetched && now - tx.acks.unacked_since > MethodTuner::ack_limit_ns(oldest.length))
        tx.learnt.methods.not_fetched(tx.acks.seen);
    if (now - tx.acks.unacked_since < kStuckNs) return;
    tx.acks.unacked_since = now;
    ep.vi->stats.count(ViCount::peer_calls);
    call_peer(ep);
}

}  // namespace

void collect_acks(Endpoint& ep) {
    Tx& tx = ep.tx;
    WorkQueue& q = ep.vi->send;
    if (!ep.connected || q.completed == q.taken) return;
    const uint64_t placed = tx.peer->placed.load(std::memory_order_acquire);
    const auto count = static_cast<uint32_t>(placed);
    if (count - tx.acks.seen > tx.acks.wanted - tx.acks.seen) {
        tx.stopped = true;
        update_fast(ep);
        break_connection(ep, VIP_ERROR_CONN_LOST, true, CauseKind::protocol);
        return;
    }
    if (count != tx.acks.seen) {
        tx.acks.seen = count;
        tx.acks.unacked_since = 0;
        tx.acks.looks = 0;
        complete_in_order(ep);
    } else if (ep.awaits_acks.load(std::memory_order_relaxed) != 0) {
        note_unacked(ep);
    }
    const auto nack = static_cast<uint32_t>(placed >> 32) & kNackBits;
    if (nack == 0 || q.completed == q.taken) return;
    const Outstanding& failed = tx.outstanding[q.completed & q.mask];
    uint32_t status = failed.status;
    if (failed.state == Outstanding::sending && tx.acks.wanted == count && tx.message.active) {
        // Refused while its fragments are on their way: it would have been the next one.
        status = tx.message.operation == kLineWrite ? VIP_STATUS_OP_RDMA_WRITE : VIP_STATUS_OP_SEND;
        tx.message.active = false;
    } else if (failed.state != Outstanding::waits_for_ack || failed.ack_at != count + 1) {
        return;
    }
    tx.stopped = true;
    update_fast(ep);
    if (const Cause told = cause_told(ep)) ep.vi->cause_of(q) = {told, true};
    complete(ep, status | nack, 0, After::break_silently);
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
        Outstanding{++tx.acks.wanted, status, length, Outstanding::waits_for_ack, After::nothing};
    if (ep.awaits_acks.load(std::memory_order_relaxed) == 0)
        ep.awaits_acks.store(tx.acks.wanted << 1 | 1, std::memory_order_relaxed);
}

void finish_without_receive(Endpoint& ep, uint32_t position, uint32_t operation, uint32_t length) {
    ep.vi->stats.count(ViCount::no_receive);
    VIADUCT_PROBE2(no_receive, ep.vi, length);
    if (reliable(ep)) {
        Cause cause;
        cause.kind = CauseKind::no_receive;
        cause.length = length;
        cause.high = ep.tx.credits;
        ep.vi->cause_of(ep.vi->send).cause = cause;
        tell_cause(ep, cause);
    }
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

void poll_send(ViCore& vi) {
    Endpoint& ep = *vi.endpoint;
    collect_acks(ep);
    if (ep.tx.backlog) push_sends(ep);
}

}  // namespace viaduct::paramnet
