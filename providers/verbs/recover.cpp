// SPDX-License-Identifier: BSD-2-Clause
#include "providers/verbs/recover.hpp"

#include <algorithm>
#include <mutex>

#include "core/clock/limits.hpp"
#include "core/log/log.hpp"
#include "providers/verbs/failed.hpp"
#include "providers/verbs/group.hpp"
#include "providers/verbs/nic.hpp"
#include "providers/verbs/progress.hpp"
#include "vipl.h"

namespace viaduct::verbs {

namespace {

constexpr int64_t kStepNs = 1'000'000;  // between looks at a device that has not told everything
constexpr uint32_t kPsnMask = 0xFFFFFF;

enum class Progress : uint8_t { again, waits, over, failed };

// Every work request has been heard of: the last one of each queue comes last, and is always told.
bool all_told(const Endpoint& ep, const Link& link) {
    const WorkQueue& recv = ep.vi->recv;
    const bool receives = recv.completed == link.receives_end || ep.recv_seen == link.receives_end;
    return receives && (ep.on_device == ep.device_end || ep.send_seen == ep.device_end);
}

void take_everything(Endpoint& ep) {
    for (Group* group : {ep.recv_group, ep.send_group})
        while (collect(*group)) {
            drain_receives(ep);
            drain_sends(ep);
        }
    drain_receives(ep);
    drain_sends(ep);
}

void tell_refusal(const Endpoint& ep) {
    ep.vi->events->async_error(*ep.vi, VIP_ERROR_RDMAW_PROT, VIP_RESOURCE_VI, VIP_STATUS_OP_REMOTE_RDMA_WRITE,
                               nullptr);
}

// Refused writes with immediate data come behind everything that arrived before them.
void complete_refusals(Endpoint& ep, Link& link) {
    WorkQueue& q = ep.vi->recv;
    for (const uint32_t immediate : link.recovery.refused) {
        if (q.completed == q.taken) {
            tell_refusal(ep);
            continue;
        }
        complete_refused_write(q, immediate);
    }
    link.recovery.refused.clear();
}

bool tell_reset(Link& link, int64_t now) {
    Recovery& r = link.recovery;
    r.psn = static_cast<uint32_t>(now >> 8) & kPsnMask;
    Message m;
    m.kind = MessageKind::reset;
    m.handle = r.epoch + 1;
    m.length = r.received;
    m.key = r.psn;
    return send_message(link, m);
}

bool tell_ready(Link& link) {
    Message m;
    m.kind = MessageKind::ready;
    m.handle = link.recovery.epoch + 1;
    return send_message(link, m);
}

// What the peer has received counts as sent, and whatever was before it.
void settle_sends(Endpoint& ep, uint32_t received) {
    const WorkQueue& q = ep.vi->send;
    for (uint32_t p = q.completed; p != q.taken; ++p) {
        const Sent& one = ep.sent[p & q.mask];
        if (one.state == Sent::posted && one.takes_receive && one.ordinal < received) ep.on_device = p + 1;
    }
    complete_in_order(ep);
}

bool renew(Endpoint& ep, Link& link) {
    Recovery& r = link.recovery;
    settle_sends(ep, r.peer_received);
    complete_refusals(ep, link);  // those that the peer told of before it began with the round
    if (!renew_data(link, r.psn, r.peer_psn)) return false;
    WorkQueue& q = ep.vi->recv;
    link.receives_end = ep.recv_seen = q.completed;
    r.received = 0;
    r.renewed = true;
    post_receives(ep, link);
    return true;
}

void finish(Endpoint& ep, Link& link) {
    Recovery& r = link.recovery;
    ++r.epoch;
    r.under_way = r.told = r.renewed = r.ready_told = r.peer_told = r.peer_ready = false;
    r.sent = 0;
    r.wanted.store(false);
    repost_sends(ep);
    push_sends(ep);
    VIADUCT_LOG(info, "verbs", "connection %u goes on after an error", link.number);
}

// Both queue locks held.
Progress step(Endpoint& ep, Link& link, int64_t now) {
    Recovery& r = link.recovery;
    if (!ep.connected) return Progress::over;  // start() pokes us when it is
    if (!r.under_way) {
        r.under_way = true;
        r.give_up_at = now + limit_ns(TimeLimit::verbs_recovery);
    }
    if (now >= r.give_up_at) return Progress::failed;
    if (!r.told) {
        stop_data(link);
        take_everything(ep);
        if (ep.vi->is_marked_broken()) return Progress::waits;
        if (!all_told(ep, link)) return Progress::again;
        complete_refusals(ep, link);
        if (!tell_reset(link, now)) return Progress::again;
        r.told = true;
    }
    if (!r.peer_told) return Progress::waits;
    if (!r.renewed && !renew(ep, link)) return Progress::failed;
    if (!r.ready_told && !tell_ready(link)) return Progress::again;
    r.ready_told = true;
    if (!r.peer_ready) return Progress::waits;
    finish(ep, link);
    return Progress::over;
}

}  // namespace

void want_recovery(Link& link) {
    if (!link.recovery.wanted.exchange(true)) wake_progress(*link.nic);
}

void refuse_later(Link& link, const Endpoint& ep, uint32_t immediate) {
    std::vector<uint32_t>& refused = link.recovery.refused;              // the progress thread's alone
    if (refused.size() == ep.vi->recv.depth()) return tell_refusal(ep);  // no receive can be left for it
    refused.push_back(immediate);
    want_recovery(link);
}

void handle_recovery(Link& link, Endpoint& ep, const Message& m) {
    Recovery& r = link.recovery;
    if (link.traits.reliability != VIP_SERVICE_UNRELIABLE) return;  // no peer of ours says such a thing
    const std::scoped_lock both(ep.vi->recv.lock, ep.vi->send.lock);
    if (m.handle != r.epoch + 1) return;
    if (m.kind == MessageKind::reset && !r.peer_told) {
        r.peer_told = true;
        r.peer_received = static_cast<uint32_t>(std::min<uint64_t>(m.length, r.sent));
        r.peer_psn = m.key & kPsnMask;
        r.wanted.store(true);
    } else if (m.kind == MessageKind::ready && r.peer_told) {
        r.peer_ready = true;
        // At once: the peer's next word may be about the next round.
        if (r.ready_told) finish(ep, link);
    }
}

Deadline recover_links(NicContext& nic, int64_t now) {
    Deadline next = kNever;
    for (Link* link : all_links(nic)) {
        if (!link->recovery.wanted.load()) continue;
        Endpoint* ep = pin_endpoint(*link);
        if (ep == nullptr) continue;
        ViCore& vi = *ep->vi;
        {
            const std::scoped_lock both(vi.recv.lock, vi.send.lock);
            const bool live = ep->link == link && !vi.is_marked_broken();
            const Progress did = live ? step(*ep, *link, now) : Progress::over;
            if (did == Progress::again) next = std::min(next, now + kStepNs);
            if (did == Progress::waits) next = std::min<Deadline>(next, link->recovery.give_up_at);
            if (did == Progress::failed)
                vi.mark_broken(BreakReason{VIP_ERROR_CONN_LOST, VIP_RESOURCE_VI, 0, nullptr, true, {}, false});
        }
        vi.events->settle(vi);
        unpin_endpoint(*ep);
    }
    return next;
}

}  // namespace viaduct::verbs
