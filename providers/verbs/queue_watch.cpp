// SPDX-License-Identifier: BSD-2-Clause
#include "providers/verbs/queue_watch.hpp"

#include <algorithm>

#include "core/sync/asymmetric_barrier.hpp"
#include "providers/verbs/group.hpp"
#include "providers/verbs/progress.hpp"

namespace viaduct::verbs {

namespace {

// Looks at the sends that were out, and unmoved, at the look before. True: some are out.
bool look_at_sends(NicContext& nic) {
    bool any = false;
    for (Link* link : all_links(nic)) {
        Endpoint* ep = pin_endpoint(*link);
        if (ep == nullptr) continue;
        const uint32_t seen = ep->sends_seen.load(std::memory_order_relaxed);
        const bool out = ep->sends_given.load(std::memory_order_relaxed) != seen;
        if (out && link->sends_were_out && seen == link->sends_seen) poll_group(ep->send_group);
        link->sends_were_out = out;
        link->sends_seen = seen;
        any |= out;
        unpin_endpoint(*ep);
    }
    return any;
}

// A group that was not polled since it was looked at last. When to look again.
int64_t look_at_group(Group& group, int64_t now) {
    if (now < group.watch_at) return group.watch_at;
    // The first time it is new: no thread had a reason to poll it before.
    if (group.watch_at != 0 && group.looks.load(std::memory_order_relaxed) == group.looks_seen)
        poll_group(&group);
    group.looks_seen = group.looks.load(std::memory_order_relaxed);
    return group.watch_at = now + kGroupTimeout;
}

}  // namespace

void note_sends(Endpoint& ep) {
    ep.sends_seen.store(ep.send_seen, std::memory_order_relaxed);
    ep.sends_given.store(ep.device_end, std::memory_order_relaxed);
    if (ep.device_end == ep.send_seen) return;
    light_barrier();  // partner: watch_sends
    NicContext& nic = *ep.nic;
    if (nic.sends_watched.load(std::memory_order_relaxed) != 0) [[likely]]
        return;
    if (nic.sends_watched.exchange(1) == 0) wake_progress(nic);
}

Deadline watch_sends(NicContext& nic, int64_t now) {
    if (nic.sends_watched.load() == 0) return kNever;
    if (nic.look_at_sends_at == kNever) {  // the watch begins
        look_at_sends(nic);
        nic.empty_looks = 0;
        return nic.look_at_sends_at = now + kSendTimeout;
    }
    if (now < nic.look_at_sends_at) return nic.look_at_sends_at;
    const bool out = look_at_sends(nic);
    nic.empty_looks = out ? 0 : nic.empty_looks + 1;
    if (nic.empty_looks > kEmptyLooks) {
        // A post from now on says so; one before the barrier is seen behind it.
        nic.sends_watched.store(0);
        heavy_barrier_process();
        if (!look_at_sends(nic)) return nic.look_at_sends_at = kNever;
        nic.sends_watched.store(1);
    }
    return nic.look_at_sends_at = now + kSendTimeout;
}

Deadline watch_groups(NicContext& nic, int64_t now) {
    Deadline next = kNever;
    for (Link* link : all_links(nic)) {
        if (!link->joined.load()) continue;
        Endpoint* ep = pin_endpoint(*link);  // groups outlive their endpoints
        if (ep == nullptr) continue;
        for (Group* group : {ep->recv_group, ep->send_group})
            next = std::min(next, look_at_group(*group, now));
        unpin_endpoint(*ep);
    }
    return next;
}

}  // namespace viaduct::verbs
