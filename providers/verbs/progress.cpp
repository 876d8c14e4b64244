// SPDX-License-Identifier: BSD-2-Clause
#include "providers/verbs/progress.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstring>
#include <exception>
#include <mutex>
#include <vector>

#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"
#include "core/log/log.hpp"
#include "core/sync/cancellation.hpp"
#include "core/sync/futex.hpp"
#include "providers/verbs/connect.hpp"
#include "providers/verbs/control_qp.hpp"
#include "providers/verbs/group.hpp"
#include "providers/verbs/nic.hpp"
#include "providers/verbs/port_watch.hpp"
#include "providers/verbs/queue_watch.hpp"
#include "providers/verbs/recover.hpp"
#include "providers/verbs/verbs_ops.hpp"

namespace viaduct::verbs {

namespace {


// ---- rdma_cm

void take_cm_events(NicContext& nic) {
    rdma_cm_event* event = nullptr;
    while (ops->get_cm_event(nic.events, &event) == 0) {
        CmEvent copy;
        copy.type = event->event;
        copy.id = event->id;
        copy.status = event->status;
        copy.reads = event->param.conn.responder_resources;
        if (event->param.conn.private_data != nullptr) {
            copy.bytes = std::min<size_t>(event->param.conn.private_data_len, sizeof copy.data);
            std::memcpy(copy.data, event->param.conn.private_data, copy.bytes);
        }
        ops->ack_cm_event(event);  // at once: destroying an id waits for it
        const std::lock_guard lock(nic.connect_mutex);
        handle_event(nic, copy);
    }
}

void destroy_ids(NicContext& nic) {
    std::vector<rdma_cm_id*> dead;
    {
        const std::lock_guard lock(nic.connect_mutex);
        dead.swap(nic.ids_to_destroy);
    }
    for (rdma_cm_id* id : dead) ops->destroy_id(id);
}

// ---- the device

Link* link_with(NicContext& nic, const ibv_qp* qp) {
    const std::lock_guard lock(nic.links_mutex);
    for (Link* link : nic.links)
        if (link != nullptr && (link->data == qp || link->control_qp == qp)) return link;
    return nullptr;
}

// Ends the connection of a link with what has arrived delivered first. No lock held.
void break_link(Link& link, VIP_ERROR_CODE code, VIP_RESOURCE_CODE resource) {
    Endpoint* ep = pin_endpoint(link);
    if (ep == nullptr) return;
    ViCore& vi = *ep->vi;
    {
        const std::scoped_lock both(vi.recv.lock, vi.send.lock);
        if (ep->link == &link && ep->connected) {
            while (collect(*ep->recv_group) || collect(*ep->send_group)) {
                drain_receives(*ep);
                drain_sends(*ep);
            }
            drain_receives(*ep);
            drain_sends(*ep);
            vi.mark_broken(BreakReason{code, resource, 0, nullptr, true, {}, false});
        }
    }
    vi.events->settle(vi);
    unpin_endpoint(*ep);
}

void take_async_events(NicContext& nic) {
    ibv_async_event event;
    while (ops->get_async_event(nic.device, &event) == 0) {
        const ibv_event_type type = event.event_type;
        const ibv_qp* qp = event.element.qp;
        ops->ack_async_event(&event);
        VIADUCT_LOG(info, "verbs", "device: %s", ::ibv_event_type_str(type));
        switch (type) {
            case IBV_EVENT_QP_FATAL:
            case IBV_EVENT_QP_REQ_ERR:
            case IBV_EVENT_QP_ACCESS_ERR:
            case IBV_EVENT_QP_LAST_WQE_REACHED:
                if (Link* link = link_with(nic, qp)) suspect(*link);
                break;
            case IBV_EVENT_CQ_ERR:
                for (Link* link : all_links(nic)) break_link(*link, VIP_ERROR_CATASTROPHIC, VIP_RESOURCE_CQ);
                break;
            case IBV_EVENT_DEVICE_FATAL:
                for (Link* link : all_links(nic)) break_link(*link, VIP_ERROR_CATASTROPHIC, VIP_RESOURCE_NIC);
                break;
            case IBV_EVENT_PORT_ERR:
            case IBV_EVENT_PORT_ACTIVE:
                handle_port_event(nic, event, now_ns());
                break;
            default:
                break;
        }
    }
}

// ---- connections that end

// Connections that have ended. The time to look again.
Deadline settle_links(NicContext& nic, int64_t now) {
    Deadline next = kNever;
    for (Link* link : all_links(nic)) {
        bool over = false;
        {
            const std::lock_guard lock(nic.links_mutex);
            if (link->endpoint == nullptr) continue;
            over = link->lost || (link->suspect_until != 0 && now >= link->suspect_until);
            if (!over && link->suspect_until != 0) next = std::min(next, link->suspect_until);
        }
        if (!over) continue;
        VIADUCT_LOG(info, "verbs", "connection %u lost%s", link->number,
                    link->lost ? ": the peer has left" : "");
        break_link(*link, VIP_ERROR_CONN_LOST, VIP_RESOURCE_VI);
    }
    return next;
}

// What this end has still to tell is under way while the control QP has sends out.
bool all_told(Link& link) {
    const std::lock_guard lock(link.control_mutex);
    return link.untold.empty() && link.free_sends == kControlDepth;
}

// One step of a link that leaves. True: it is destroyed.
bool leave(NicContext& nic, Link* link, int64_t now, bool hurry) {
    if (!link->disconnect_sent && (hurry || link->lost || all_told(*link) || now >= link->leave_at)) {
        ops->disconnect(link->id);
        link->disconnect_sent = true;
        link->leave_at = now + limit_ns(TimeLimit::verbs_close);
    }
    if (!link->disconnect_sent || (!hurry && !link->lost && now < link->leave_at)) return false;
    {
        const std::lock_guard lock(nic.connect_mutex);
        nic.owners.erase(link->id);
    }
    ops->destroy_id(link->id);
    destroy_link(link);
    return true;
}

// Allocates nothing. Only the progress thread, or stop_progress() after its end, removes links; other threads append.
Deadline see_off(NicContext& nic, int64_t now, bool hurry) {
    Deadline next = kNever;
    for (size_t place = 0;;) {
        Link* link = nullptr;
        {
            const std::lock_guard lock(nic.links_mutex);
            if (place >= nic.leaving.size()) return next;
            link = nic.leaving[place];
        }
        if (!leave(nic, link, now, hurry)) {
            next = std::min(next, link->leave_at);
            ++place;
            continue;
        }
        const std::lock_guard lock(nic.links_mutex);
        nic.leaving.erase(nic.leaving.begin() + static_cast<std::ptrdiff_t>(place));
    }
}

void free_dropped(NicContext& nic) {
    for (;;) {
        Link* link = nullptr;
        {
            const std::lock_guard lock(nic.links_mutex);
            if (nic.dropped.empty()) return;
            link = nic.dropped.back();
            nic.dropped.pop_back();
        }
        destroy_link(link);
    }
}

// ---- sends that wait for room

void push_backlogs(NicContext& nic) {
    drain_channel(nic);
    for (Link* link : all_links(nic)) {
        Endpoint* ep = pin_endpoint(*link);
        if (ep == nullptr) continue;
        ViCore& vi = *ep->vi;
        vi.send.lock.lock();
        if (ep->backlog) {
            arm(*ep->send_group);
            while (collect(*ep->send_group)) {
            }
            drain_sends(*ep);
            push_sends(*ep);
        }
        vi.send.lock.unlock();
        vi.events->settle(vi);
        unpin_endpoint(*ep);
    }
    wake(&nic);  // completions of others may have been among what was found
}

// ---- the thread

Deadline look_at_everything(NicContext& nic) {
    serve_control_qps(nic);  // first: why a connection has ended is said before it ends
    take_cm_events(nic);
    serve_control_qps(nic);
    take_async_events(nic);
    const int64_t now = now_ns();
    Deadline next = watch_port(nic, now);
    next = std::min(next, watch_sends(nic, now));
    next = std::min(next, watch_groups(nic, now));
    next = std::min(next, settle_links(nic, now));
    next = std::min(next, recover_links(nic, now));
    next = std::min(next, keep_alive(nic, now));
    next = std::min(next, see_off(nic, now, false));
    {
        const std::lock_guard lock(nic.connect_mutex);
        next = std::min(next, run_timers(nic, now));
    }
    destroy_ids(nic);
    free_dropped(nic);
    if (nic.backlogs.load() != 0) push_backlogs(nic);
    return next;
}

void sleep_until(NicContext& nic, Deadline next) {
    pollfd fds[5] = {{nic.events->fd, POLLIN, 0},
                     {nic.device->async_fd, POLLIN, 0},
                     {nic.control_channel->fd, POLLIN, 0},
                     {nic.progress_event.fd(), POLLIN, 0},
                     {nic.channel->fd, POLLIN, 0}};
    const nfds_t count = nic.backlogs.load() != 0 ? 5 : 4;
    const int64_t left = remaining_ns(next);
    const timespec limit = timespec_of(left);
    ::ppoll(fds, count, left < 0 ? nullptr : &limit, nullptr);
    nic.progress_event.clear();
}

// An exception that left this thread would end the program. Sources that it kept from being read are read again after
// kPause.
Deadline look_or_try_again(NicContext& nic) {
    constexpr int64_t kPause = 20'000'000;
    try {
        return look_at_everything(nic);
    } catch (const std::exception&) {
        VIADUCT_LOG(error, "verbs", "no memory: events of the device and of rdma_cm may be lost");
        return now_ns() + kPause;
    }
}

void run(void* argument) {
    NicContext& nic = *static_cast<NicContext*>(argument);
    while (nic.progress_stop.load() == 0) {
        const Deadline next = look_or_try_again(nic);
        if (nic.progress_stop.load() == 0) sleep_until(nic, next);
    }
    nic.progress_running.store(0);
    futex_wake(nic.progress_running, INT_MAX, false);
}

}  // namespace

std::vector<Link*> all_links(NicContext& nic) {
    const std::lock_guard lock(nic.links_mutex);
    std::vector<Link*> links;
    for (Link* link : nic.links)
        if (link != nullptr) links.push_back(link);
    return links;
}

Status ensure_progress(NicContext& nic) {
    std::call_once(nic.progress_once, [&nic] {
        nic.progress_running.store(1);
        nic.progress_status = nic.agent->spawn("vipl-verbs", run, &nic);
        if (nic.progress_status != Status::ok) nic.progress_running.store(0);
    });
    return nic.progress_status;
}

void stop_progress(NicContext& nic) {
    nic.progress_stop.store(1);
    wake_progress(nic);
    while (nic.progress_running.load() != 0) futex_wait(nic.progress_running, 1, -1, false);
    // What the thread would have ended is ended now, without waiting for a peer.
    see_off(nic, now_ns(), true);
    destroy_ids(nic);
    free_dropped(nic);
}

void wake_progress(NicContext& nic) {
    const CancellationHeldOff inside_hot_calls;
    nic.progress_event.signal();
}

}  // namespace viaduct::verbs
