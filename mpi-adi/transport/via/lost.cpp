// SPDX-License-Identifier: BSD-2-Clause
// The end of a connection that was not agreed upon: all descriptors are collected, all requests of the peer
// end in error, the engine hears of it once (spec/adi 12, C65). The error callback only counts; everything
// happens here, from progress.
#include "mpi-adi/transport/adi/blocking.hpp"
#include "mpi-adi/transport/adi/error.hpp"
#include "mpi-adi/transport/via/device.hpp"

namespace viaduct::via {

void doom_connection(Lane* c, const char* why) {
    c->doomed = why;
    viadev.lost_events.fetch_add(1, std::memory_order_relaxed);
}

void look_for_lost() {
    const uint32_t events = viadev.lost_events.load(std::memory_order_acquire);
    if (events == viadev.lost_seen) [[likely]]
        return;
    viadev.lost_seen = events;
    answer_rings();
    for (size_t rank = 0; rank < viadev.peers().size(); ++rank) {
        Lane* c = viadev.lane(rank);
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

}  // namespace viaduct::via
