// SPDX-License-Identifier: BSD-2-Clause
// What stands for the network between two PARAMNet-II NICs: the fault plan of a connection and the time that
// a link takes. Everything here runs with vi.send.lock held.
#include <algorithm>

#include "core/clock/clock.hpp"
#include "providers/paramnet/nic.hpp"
#include "providers/paramnet/send.hpp"

namespace viaduct::paramnet {

namespace {

// What the fault plan makes of one message; retries and drops are counted.
FaultOutcome draw_outcome(Endpoint& ep, FaultModel& model) {
    const FaultCounters before = model.counters();
    const FaultOutcome outcome = model.decide(reliable(ep));
    const FaultCounters& after = model.counters();
    ViStats& stats = ep.vi->stats;
    stats.count(ViCount::retries, after.retransmitted - before.retransmitted);
    stats.count(ViCount::drops, after.duplicated - before.duplicated);
    return outcome;
}

// What the fault plan does with the head message. done: it arrives. waits: delayed. stopped: it does not arrive, and
// its descriptor is finished.
Step pass_faults(Endpoint& ep, VIP_DESCRIPTOR* d, uint32_t total) {
    Tx& tx = ep.tx;
    const uint32_t operation = operation_of(d);
    if (tx.network.faults && tx.network.faults->plan().delay_us != 0) {
        const int64_t now = now_ns();
        if (tx.network.held_until == 0) {
            tx.network.held_until = now + int64_t{tx.network.faults->plan().delay_us} * 1000;
            tx.network.faults->count_delay();
        }
        if (now < tx.network.held_until) return Step::waits;
    }
    FaultOutcome outcome = tx.network.faults ? draw_outcome(ep, *tx.network.faults) : FaultOutcome::arrives;
    if (tx.network.link_down) outcome = reliable(ep) ? FaultOutcome::failed : FaultOutcome::lost;
    tx.network.held_until = 0;
    if (outcome == FaultOutcome::arrives) {
        tx.network.faults_passed = true;
        return Step::done;
    }
    const uint32_t position = ep.vi->send.taken++;
    const uint32_t status = send_status_op(operation);
    ep.vi->stats.count(ViCount::drops);
    if (outcome == FaultOutcome::failed) {
        ep.vi->cause_of(ep.vi->send).cause.kind =
            tx.network.link_down || (tx.network.faults && tx.network.faults->plan().link_down) ? CauseKind::link_down
                                                                                               : CauseKind::no_answer;
        finish(ep, position, status | VIP_STATUS_TRANSPORT_ERROR, 0, After::break_lost);
    } else {
        // spec/reliability 6.2: an unreliable message is lost without a trace, but for a damaged RDMA write
        // (spec/errors 8 RDMAW_DATA).
        if (outcome == FaultOutcome::damaged && operation == VIP_CONTROL_OP_RDMAWRITE)
            tell_event(ep, kEventWriteDamaged);
        finish(ep, position, status, total, After::nothing);
    }
    return Step::stopped;
}

// What a request carries besides its operands: it has no payload.
constexpr uint64_t kRequestBytes = 0;

// When the head message has passed the network. Its NIC took it up when it was posted, even if no thread polled
// at that moment; but a late poll is allowed for by at most a millisecond.
int64_t arrival_of(Endpoint& ep, const VIP_DESCRIPTOR* d, uint32_t total, int64_t now) {
    constexpr int64_t kLateAllowance = 1'000'000;
    WorkQueue& q = ep.vi->send;
    const LinkModel& link = ep.nic->settings.link;
    LinkFree& out = ep.nic->link_free;
    LinkFree& to_peer = ep.joint.peer->hub->link_free;
    LinkFree& to_us = ep.nic->hub->link_free;
    const int64_t posted = std::max(ep.tx.outstanding[q.taken & q.mask].posted_at, now - kLateAllowance);
    switch (operation_of(d)) {
        case VIP_CONTROL_OP_RDMAREAD:
            return link.answer_arrival(posted, kRequestBytes, total, out, to_peer, to_us);
        case VIP_CONTROL_OP_RESERVED:  // an atomic operation: operands there, the old value back
            return link.answer_arrival(posted, total, total, out, to_peer, to_us);
        default:
            return link.arrival(posted, total, out, to_peer);
    }
}

Step pass_link(Endpoint& ep, const VIP_DESCRIPTOR* d, uint32_t total) {
    const int64_t now = now_ns();
    int64_t arrives = ep.arrives_at.load(std::memory_order_relaxed);
    if (arrives == 0) {
        arrives = arrival_of(ep, d, total, now);
        ep.arrives_at.store(arrives, std::memory_order_relaxed);
        if (!ep.send_hot.load(std::memory_order_relaxed)) request_poll(ep);  // a poll of its group looks at it
    }
    if (now < arrives) return Step::waits;
    ep.arrives_at.store(0, std::memory_order_relaxed);
    ep.tx.network.link_passed = true;
    return Step::done;
}

}  // namespace

Step pass_network(Endpoint& ep, VIP_DESCRIPTOR* d, uint32_t total) {
    Tx& tx = ep.tx;
    if ((tx.network.faults || tx.network.link_down) && !tx.network.faults_passed) {
        const Step passed = pass_faults(ep, d, total);
        if (passed != Step::done) return passed;
    }
    return tx.network.paced && !tx.network.link_passed ? pass_link(ep, d, total) : Step::done;
}

void leave_network(Endpoint& ep) {
    ep.arrives_at.store(0, std::memory_order_relaxed);
    ep.tx.network.held_until = 0;
    ep.tx.network.faults_passed = ep.tx.network.link_passed = false;
}

void stamp_posts(Endpoint& ep) {
    Tx& tx = ep.tx;
    const WorkQueue& q = ep.vi->send;
    if (tx.network.stamped == q.posted) return;
    const int64_t now = now_ns();
    for (; tx.network.stamped != q.posted; ++tx.network.stamped)
        tx.outstanding[tx.network.stamped & q.mask].posted_at = now;
}

}  // namespace viaduct::paramnet
