// SPDX-License-Identifier: BSD-2-Clause
// What stands for the network between two PARAMNet-II NICs: the fault plan of a connection and the rate of a
// link. Everything here runs with vi.send.lock held.
#include <algorithm>

#include "core/clock/clock.hpp"
#include "providers/paramnet/lanes.hpp"
#include "providers/paramnet/nic.hpp"

namespace viaduct::paramnet {

namespace {

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

}  // namespace

Step pass_network(Endpoint& ep, VIP_DESCRIPTOR* d, uint32_t total) {
    Tx& tx = ep.tx;
    if ((tx.faults || tx.link_down) && !tx.fate_decided) {
        const Step passed = pass_faults(ep, d, total);
        if (passed != Step::done) return passed;
    }
    return tx.paced && !tx.link_passed ? pass_link(ep, total) : Step::done;
}

}  // namespace viaduct::paramnet
