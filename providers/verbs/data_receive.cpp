// SPDX-License-Identifier: BSD-2-Clause
// The data path of receives: work requests from descriptors, results of descriptors from completions (spec/verbs e.2).
// Run by any thread of the program and by the progress thread, with vi.recv.lock held. Sends are in data_send.cpp.
#include <arpa/inet.h>

#include <algorithm>
#include <utility>

#include "core/log/log.hpp"
#include "core/sync/cancellation.hpp"
#include "providers/verbs/failed.hpp"
#include "providers/verbs/gather.hpp"
#include "providers/verbs/group.hpp"
#include "providers/verbs/link.hpp"

namespace viaduct::verbs {

namespace {

// The entries of a receive with a segment that goes past the end of its region: only as many bytes as the regions hold.
// A message of that length is received; the device refuses a longer one. The list ends at the first segment that is not
// held whole, so that no later segment is written.
[[gnu::noinline, gnu::cold]] int gather_held(const Endpoint& ep, const VIP_DESCRIPTOR* d, ibv_sge* out) {
    const VIP_DESCRIPTOR_SEGMENT* segments = segments_of(d);
    int n = 0;
    for (uint32_t i = 0; i < d->CS.SegCount && i < kMostSegments; ++i) {
        const SegmentValue s = read_segment(segments[i].Local);
        if (s.length == 0) continue;
        Region region;
        if (!ep.vi->regions->snapshot(s.handle, &region) || !ptags_agree(region.ptag, ep.vi->ptag) ||
            s.address - region.base >= region.length)
            return n;
        const uint64_t held = region.length - (s.address - region.base);
        const auto length = static_cast<uint32_t>(std::min<uint64_t>(s.length, held));
        out[n++] = ibv_sge{s.address, length, ep.nic->keys.local_key(s.handle)};
        if (length != s.length) return n;
    }
    return n;
}

// The entry of a receive that no message can use (bad form, memory that is not registered): with a key that does not
// exist, so that the device fails it. The error is kept in Endpoint::bad_receive for the completion.
void make_unusable(ibv_sge* sge, ibv_recv_wr* wr) {
    *sge = ibv_sge{0, 1u << 30, 0};
    wr->num_sge = 1;
}

void finish_receive(Endpoint& ep, const Arrival& a) {
    WorkQueue& q = ep.vi->recv;
    ++ep.link->recovery.received;
    const uint32_t known = std::exchange(ep.bad_receive[a.position & q.mask], 0);
    if (known != 0 && (known & kReceiveHolds) == 0) {  // a message without bytes: the device does not use the bad key
        complete_head(q, VIP_STATUS_OP_RECEIVE | known, 0);
        if (!unreliable(ep)) break_connection(ep, VIP_ERROR_CONN_LOST, false);
        return;
    }
    uint32_t status = a.opcode == IBV_WC_RECV_RDMA_WITH_IMM ? VIP_STATUS_OP_REMOTE_RDMA_WRITE : VIP_STATUS_OP_RECEIVE;
    if ((a.flags & IBV_WC_WITH_IMM) != 0) {
        q.oldest_incomplete()->CS.ImmediateData = ntohl(a.immediate);
        status |= VIP_STATUS_IMMEDIATE;
    }
    complete_head(q, status, a.length);
}

}  // namespace

void post_receives(Endpoint& ep, Link& link) {
    WorkQueue& q = ep.vi->recv;
    if (link.recovery.under_way && !link.recovery.renewed) return;
    for (; link.receives_end != q.posted; ++link.receives_end) {
        const VIP_DESCRIPTOR* d = q.at(link.receives_end);
        ibv_sge list[kMostSegments];
        ibv_recv_wr wr;
        wr.next = nullptr;
        uint64_t capacity = 0;
        uint32_t error = check_receive(*ep.vi, d, &capacity);
        if (error == VIP_STATUS_PROTECTION_ERROR && !ep.vi->strict_receives) [[unlikely]]
            error |= kReceiveHolds;
        ep.bad_receive[link.receives_end & q.mask] = error;
        wr.wr_id = make_wr_id(ep.slot, link.generation, true, link.receives_end);
        wr.sg_list = list;
        if (error == 0) [[likely]] {
            wr.num_sge = gather_list(*ep.nic, d, 0, list);
        } else if ((error & kReceiveHolds) != 0) {
            wr.num_sge = gather_held(ep, d, list);
        } else {
            make_unusable(list, &wr);
        }
        ibv_recv_wr* bad = nullptr;
        if (ibv_post_recv(link.data, &wr, &bad) != 0) {
            VIADUCT_LOG(error, "verbs", "the device does not take a receive");
            if (ep.connected) break_connection(ep, VIP_ERROR_CONN_LOST, true);
            return;
        }
    }
    if (ep.connected) q.taken = link.receives_end;
}

void drain_receives(Endpoint& ep) {
    WorkQueue& q = ep.vi->recv;
    if (!ep.connected) return;
    for (const Arrival* a = ep.recv_arrivals.front(); a != nullptr; a = ep.recv_arrivals.front()) {
        const Arrival one = *a;
        ep.recv_arrivals.pop();
        if (one.generation != ep.link->generation) continue;
        ep.recv_seen = one.position + 1;
        // Receives complete in posting order; anything else is no completion of the oldest one, and is ignored.
        if (one.position != q.completed || q.completed == q.taken) continue;
        if (one.status == IBV_WC_SUCCESS) {
            finish_receive(ep, one);
        } else if (!ep.vi->is_marked_broken()) {
            fail_receive(ep, one);
        }
    }
}

// The entries below hold pthread_cancel off, as those of sends do (data_send.cpp).
void kick_recv(ViCore& vi) {
    const CancellationHeldOff inside_hot_calls;
    Endpoint& ep = *vi.endpoint;
    if (ep.takes_receives != nullptr) post_receives(ep, *ep.takes_receives);
}

void poll_recv(ViCore& vi) {
    const CancellationHeldOff inside_hot_calls;
    Endpoint& ep = *vi.endpoint;
    if (ep.recv_arrivals.empty() && !collect(*ep.recv_group)) return;
    drain_receives(ep);
}

}  // namespace viaduct::verbs
