// SPDX-License-Identifier: BSD-2-Clause
// One pass of progress: what comes in first, then lanes with new credit (spec/adi C54, G8), finished sends, what has
// landed; when nothing comes, receives to post and credits to tell, so that these are not in the way of an
// answer; and by and by lanes that have broken (spec/adi 12, C65) or are to be connected.
#include <algorithm>

#include "mpi-adi/transport/adi/blocking.hpp"
#include "mpi-adi/transport/via/receive.hpp"
#include "mpi-adi/transport/via/transport.hpp"

namespace viaduct::via {

namespace {

// Replies to requests that lie there, say: the other side begins to copy while this one does.
constexpr int kPacketsBetweenMoves = 16;
// Passes with something to do between two looks for what is not in the receive queue.
constexpr uint32_t kBusyPasses = 256;

int work_on_flow_list(Nic& nic) {
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

int do_chores(Nic& nic) {
    int done = 0;
    Lane* list = nic.chores_head;
    nic.chores_head = nullptr;
    while (list != nullptr) {
        Lane* c = list;
        list = c->next_chore;
        c->in_chores = false;
        if (c->peer.lost()) continue;
        if (c->slots.open) tell_slot_news(c);
        post_missing_receives(c);
        const bool answer = c->answer_late && c->credits.missing_reserve() == 0;
        if (answer) c->answer_late = false;
        if (answer || c->credits.want_noop()) send_noop(c);
        push_loan(c);
        if (c->peer.blocked()) c->peer.protocol->push(c->peer);
        ++done;
    }
    return done;
}

// All descriptors of a lane that has broken are collected, all requests of its peer end in error, and the
// engine hears of it once. The error callback only counts; everything happens here.
void look_for_lost(Nic& nic) {
    const uint32_t events = nic.lost_events.load(std::memory_order_acquire);
    if (events == nic.lost_seen) [[likely]]
        return;
    nic.lost_seen = events;
    take_requests(nic);
    for (size_t rank = 0; rank < nic.lanes.size(); ++rank) {
        Lane* c = nic.lanes[rank];
        if (c != nullptr && c->peer.lost()) pass_on_place(c);
        if (c == nullptr || c->peer.lost() || !c->peer.ready()) continue;
        if (c->doomed != nullptr) {
            fail_connection(c, c->doomed);
            continue;
        }
        VIP_VI_STATE state;
        VIP_VI_ATTRIBUTES attributes;
        VIP_BOOLEAN send_empty, recv_empty;
        if (VipQueryVi(c->vi, &state, &attributes, &send_empty, &recv_empty) != VIP_SUCCESS) continue;
        if (state == VIP_STATE_CONNECTED && c->refused_head == nullptr && !c->refuses_receives) continue;
        // What came in before the end is still in the completion queue, or in slots: it is taken first.
        take_what_came_before_the_end(c);
        if (!c->peer.lost()) fail_connection(c, "the connection is broken");
    }
}

}  // namespace

int ViaTransport::progress() {
    int done = MPID_VIA_DeviceCheck(nic);
    if (nic.flow_head != nullptr) done += work_on_flow_list(nic);
    if (nic.local_waits != 0 || (done == 0 && nic.sends_outstanding != 0)) viadev_process_send(nic);
    if (has_landed()) {
        finish_landed();
        done = 1;
    }
    if (has_moved()) {
        int packets = 0;
        while (packets < kPacketsBetweenMoves && MPID_VIA_DeviceCheck(nic) != 0) ++packets;
    }
    const bool idle = done == 0;
    if (idle && nic.chores_head != nullptr) done = do_chores(nic);
    // Now and then also by those who are never idle: somebody may wait for them.
    if (idle || ++busy_passes_ % kBusyPasses == 0) {
        look_for_lost(nic);
        if (!nic.connects.openings.empty()) done += static_cast<int>(advance_openings(nic));
    }
    return done;
}

void ViaTransport::block(unsigned timeout_us) {
    if (nic.flow_head != nullptr || nic.chores_head != nullptr || has_landed() || nic.cq == nullptr) return;
    VIP_ULONG timeout = std::max(1U, timeout_us / 1000);
    // What ends those is a send or a request, and the wait is for receives.
    if (nic.local_waits != 0 || !nic.connects.openings.empty()) timeout = 1;
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN receive;
    if (!leave_slots(nic)) return;
    VIP_RETURN rc;
    {
        const adi::Asleep asleep;
        rc = VipCQWait(nic.cq, timeout, &vi, &receive);
    }
    return_to_slots(nic);
    if (rc == VIP_SUCCESS) take_completion(vi);
}

}  // namespace viaduct::via
