// SPDX-License-Identifier: BSD-2-Clause
// One pass of progress of transport via (spec/adi 8): incoming packets, lanes with new credit (spec/adi C54, G8),
// finished sends, finished transfers. In a pass without incoming packets, which then delays no answer: receives to post
// and credits to report. From time to time: broken lanes (spec/adi 12, C65) and lanes to connect. Called by the engine
// with its lock held; block() gives the lock up while it sleeps (adi::SleepScope).
#include <algorithm>

#include "mpi-adi/transport/adi/blocking.hpp"
#include "mpi-adi/transport/via/receive.hpp"
#include "mpi-adi/transport/via/transport.hpp"

namespace viaduct::via {

namespace {

// After a part of a long message was moved, so many packets at most are taken before the next part: they may be
// requests, and the peer copies its part while this process copies its own.
constexpr int kPacketsBetweenMoves = 16;
// Passes with something to do between two checks for broken lanes and lanes to connect.
constexpr uint32_t kBusyPasses = 256;

// Pushes the lanes that have got credit. Returns their number.
int push_flow_list(Nic& nic) {
    int done = 0;
    Lane* list = nic.flow_head;
    nic.flow_head = nullptr;
    while (list != nullptr) {
        Lane* c = list;
        list = c->nextflow;
        c->inflow = false;
        c->peer.protocol->push(c->peer);
        ++done;
    }
    return done;
}

// Work that can wait for an idle pass: posting receives, reporting credits and free slots.
int do_deferred_work(Nic& nic) {
    int done = 0;
    Lane* list = nic.deferred_head;
    nic.deferred_head = nullptr;
    while (list != nullptr) {
        Lane* c = list;
        list = c->next_deferred;
        c->in_deferred = false;
        if (c->peer.lost()) continue;
        if (c->ring.open) report_ring_status(c);
        post_missing_receives(c);
        const bool answer = c->refill_late && c->credits.missing_reserve() == 0;
        if (answer) c->refill_late = false;
        if (answer || c->credits.noop_due()) send_noop(c);
        push_ring_offer(c);
        if (c->peer.blocked()) c->peer.protocol->push(c->peer);
        ++done;
    }
    return done;
}

// Ends broken lanes: collects all their descriptors, ends all requests of the peer with an error, and reports the peer
// to the engine once. The error callback of the NIC only counts events, on a thread of the library.
void handle_events(Nic& nic) {
    const uint32_t events = nic.events.load(std::memory_order_acquire);
    if (events == nic.events_seen) [[likely]]
        return;
    nic.events_seen = events;
    take_requests(nic);
    for (size_t rank = 0; rank < nic.lanes.size(); ++rank) {
        Lane* c = nic.lanes[rank];
        if (c != nullptr && c->peer.lost()) offer_freed_ring(c);
        if (c == nullptr || c->peer.lost() || !c->peer.ready()) continue;
        if (c->failure != nullptr) {
            fail_connection(c, c->failure);
            continue;
        }
        VIP_VI_STATE state;
        VIP_VI_ATTRIBUTES attributes;
        VIP_BOOLEAN send_empty, recv_empty;
        if (VipQueryVi(c->vi, &state, &attributes, &send_empty, &recv_empty) != VIP_SUCCESS) continue;
        if (state == VIP_STATE_CONNECTED && c->refused_head == nullptr && !c->refuses_receives) continue;
        // Packets that came before the end are still in the completion queue or in the ring: they are taken first.
        drain_before_failure(c);
        if (!c->peer.lost()) fail_connection(c, "the connection is broken");
    }
}

}  // namespace

int ViaTransport::progress() {
    int done = poll_packets(nic);
    if (nic.flow_head != nullptr) done += push_flow_list(nic);
    if (nic.local_waits != 0 || (done == 0 && nic.sends_outstanding != 0)) collect_finished_sends(nic);
    if (has_done_transfers()) {
        finish_done_transfers();
        done = 1;
    }
    if (has_moved()) {
        int packets = 0;
        while (packets < kPacketsBetweenMoves && poll_packets(nic) != 0) ++packets;
    }
    const bool idle = done == 0;
    if (idle && nic.deferred_head != nullptr) done = do_deferred_work(nic);
    // In a process that is never idle, every kBusyPasses passes: another one may wait to be connected.
    if (idle || ++busy_passes_ % kBusyPasses == 0) {
        if (nic.connects.page.is_noted()) [[unlikely]]
            take_requests(nic);
        handle_events(nic);
        if (!nic.connects.attempts.empty()) done += static_cast<int>(advance_attempts(nic));
    }
    return done;
}

int ViaTransport::block(unsigned timeout_us) {
    if (nic.flow_head != nullptr || nic.deferred_head != nullptr || has_done_transfers() || nic.cq == nullptr) return 0;
    VIP_ULONG timeout = std::max(1U, timeout_us / 1000);
    // Sends and connections do not end VipCQWait, which waits for receives: so a short timeout.
    if (nic.local_waits != 0)
        timeout = 1;
    else if (!nic.connects.attempts.empty())
        timeout = std::min<VIP_ULONG>(timeout, nic.connects.next_nap());
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN receive;
    if (!suspend_rings(nic)) return 0;
    VIP_RETURN rc;
    {
        const adi::SleepScope sleep;
        rc = VipCQWait(nic.cq, timeout, &vi, &receive);
    }
    resume_rings(nic);
    return rc == VIP_SUCCESS ? take_completion(vi) : 0;
}

}  // namespace viaduct::via
