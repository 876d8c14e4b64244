// SPDX-License-Identifier: BSD-2-Clause
// Life of an endpoint: made, bound to a link by an attempt, started, disconnected, destroyed.
#include "providers/verbs/endpoint.hpp"

#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <mutex>
#include <new>

#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"
#include "core/sync/cancellation.hpp"
#include "providers/verbs/control_qp.hpp"
#include "providers/verbs/group.hpp"
#include "providers/verbs/nic.hpp"
#include "providers/verbs/progress.hpp"
#include "providers/verbs/queue_watch.hpp"
#include "providers/verbs/recover.hpp"
#include "providers/verbs/verbs_ops.hpp"

namespace viaduct::verbs {

namespace {

// Flushed work requests of the connection before may still be on their way when a new one begins.
constexpr uint32_t kConnectionsAtOnce = 2;

uint32_t power_of_two(uint32_t n) {
    uint32_t p = 1;
    while (p < n) p *= 2;
    return p;
}

// What has arrived until now still counts (spec/states 3 rule 1). Both queue locks held.
void take_what_arrived(Endpoint& ep) {
    for (Group* group : {ep.recv_group, ep.send_group})
        while (collect(*group)) {
            drain_receives(ep);
            drain_sends(ep);
        }
    drain_receives(ep);
    drain_sends(ep);
}

// The peer has left, or its queue pair has failed.
bool is_lost(Link& link) {
    const std::lock_guard lock(link.nic->links_mutex);
    return link.lost || link.suspect_until != 0;
}

}  // namespace

bool Arrivals::allocate(uint32_t entries) {
    ring_.reset(new (std::nothrow) Arrival[entries]);
    mask_ = entries - 1;
    return ring_ != nullptr;
}

Status endpoint_create(NicContext* nic, const EndpointArgs& args, Endpoint** out) {
    const uint32_t slot = args.vi->slot;
    if (slot >= kMaxVi || nic->slots[slot].load() != nullptr) return Status::out_of_resources;
    std::unique_ptr<Endpoint> ep(new (std::nothrow) Endpoint);
    if (!ep) return Status::out_of_resources;
    ep->vi = args.vi;
    ep->nic = nic;
    ep->send_group = args.send_group;
    ep->recv_group = args.recv_group;
    ep->slot = slot;
    ep->send_window = std::min(nic->settings.send_window, args.vi->send.depth());
    const uint32_t receives = args.vi->recv.depth();
    ep->sent.reset(new (std::nothrow) Sent[args.vi->send.depth()]);
    ep->bad_receive.reset(new (std::nothrow) uint32_t[receives]());
    if (!ep->sent || !ep->bad_receive ||
        !ep->send_arrivals.allocate(power_of_two(kConnectionsAtOnce * ep->send_window)) ||
        !ep->recv_arrivals.allocate(power_of_two(kConnectionsAtOnce * receives)))
        return Status::out_of_resources;
    nic->slots[slot].store(ep.get(), std::memory_order_release);
    *out = ep.release();
    return Status::ok;
}

namespace {

constexpr int kYields = 100;

// Another thread handles an event of its link, which takes a moment. It may be of lower priority (SCHED_FIFO) and
// not come to run at all while we merely yield: so then we sleep.
void wait_until_unpinned(Endpoint& ep) {
    std::unique_lock lock(ep.nic->links_mutex);
    for (int looks = 0; ep.pins != 0; ++looks) {
        lock.unlock();
        if (looks < kYields) {
            ::sched_yield();
        } else {
            ::poll(nullptr, 0, 1);
        }
        lock.lock();
    }
}

}  // namespace

void endpoint_destroy(Endpoint* ep) {
    NicContext& nic = *ep->nic;
    if (ep->link != nullptr) {  // bound, never started
        const std::scoped_lock both(ep->vi->recv.lock, ep->vi->send.lock);
        disconnect(*ep->vi);
    }
    nic.slots[ep->slot].store(nullptr, std::memory_order_release);
    for (Group* group : {ep->recv_group, ep->send_group}) {  // no thread that had found it before is inside after this
        group->lock.lock();
        group->lock.unlock();
        group->cq_lock.lock();
        group->cq_lock.unlock();
    }
    wait_until_unpinned(*ep);
    delete ep;
}

void start(ViCore& vi) {
    Endpoint& ep = *vi.endpoint;
    if (ep.link == nullptr || ep.connected) return;
    Link& link = *ep.link;
    ep.connected = true;
    ep.stopped = false;
    vi.recv.taken = link.receives_end;
    ep.on_device = ep.device_end = ep.send_seen = vi.send.completed;
    ep.recv_seen = vi.recv.completed;
    note_sends(ep);
    post_receives(ep, link);
    drain_receives(ep);
    wake_progress(*ep.nic);  // it may have ended or failed before it began, and has to be kept alive from now on
}

Status finish_traffic(ViCore& vi) {
    const CancellationHeldOff inside_hot_calls;
    Endpoint& ep = *vi.endpoint;
    if (ep.link == nullptr || !ep.connected) return Status::ok;
    take_what_arrived(ep);
    if (vi.is_marked_broken() || ep.stopped || is_lost(*ep.link)) return Status::ok;
    push_sends(ep);
    return ep.stopped || vi.send.completed == vi.send.posted ? Status::ok : Status::not_done;
}

void disconnect(ViCore& vi) {
    Endpoint& ep = *vi.endpoint;
    NicContext& nic = *ep.nic;
    Link* link = ep.link;
    if (link == nullptr) return;
    stop_data(*link);
    if (ep.connected) take_what_arrived(ep);
    if (ep.backlog) nic.backlogs.fetch_sub(1, std::memory_order_relaxed);
    ep.backlog = false;
    ep.connected = false;
    ep.stopped = true;
    ep.link = ep.takes_receives = nullptr;
    destroy_data(*link);
    {
        const std::lock_guard lock(nic.links_mutex);
        link->endpoint = nullptr;
        link->leave_at = now_ns() + limit_ns(TimeLimit::verbs_last_message);
        nic.leaving.push_back(link);
    }
    wake_progress(nic);
}

Endpoint* pin_endpoint(Link& link) {
    const std::lock_guard lock(link.nic->links_mutex);
    Endpoint* ep = link.endpoint;
    if (ep != nullptr) ++ep->pins;
    return ep;
}

void unpin_endpoint(Endpoint& ep) {
    const std::lock_guard lock(ep.nic->links_mutex);
    --ep.pins;
}

void lose_link(Link& link) {
    {
        const std::lock_guard lock(link.nic->links_mutex);
        link.lost = true;
    }
    wake_progress(*link.nic);
}

void suspect(Link& link) {
    if (link.traits.reliability == VIP_SERVICE_UNRELIABLE) return want_recovery(link);
    {
        const std::lock_guard lock(link.nic->links_mutex);
        if (link.suspect_until == 0) link.suspect_until = now_ns() + limit_ns(TimeLimit::verbs_suspicion);
    }
    wake_progress(*link.nic);
}

}  // namespace viaduct::verbs
