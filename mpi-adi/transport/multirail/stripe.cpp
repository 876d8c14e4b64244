// SPDX-License-Identifier: BSD-2-Clause
// Long messages in stripes. No plan is made when a message begins: a lane takes its next stripe when it has
// room for one, as large as its measured bandwidth moves in a millisecond, so that shares follow what each
// lane does at this moment; near the end, stripes shrink to each lane's share of the rest, so that all end
// together.
#include <algorithm>
#include <cstring>

#include "mpi-adi/transport/adi/counters.hpp"
#include "mpi-adi/transport/multirail/rails.hpp"

namespace viaduct::rails {

namespace {

constexpr double kWeight = 0.25;             // of a new measurement
constexpr size_t kFirstStripe = 128 * 1024;  // before there is one
constexpr size_t kStripeUnit = 4096;
constexpr auto kLookedAway = std::chrono::milliseconds(1);

size_t rounded(double bytes) {
    return (static_cast<size_t>(bytes) + kStripeUnit - 1) / kStripeUnit * kStripeUnit;
}

}  // namespace

// With every NIC: which of them carry the message is found when it is moved.
protocol::Registration* Rails::hold(void* address, size_t bytes) {
    auto held = std::make_unique<protocol::Registration>();
    held->base = reinterpret_cast<uintptr_t>(address);
    held->bytes = bytes;
    bool any = false;
    for (const auto& rail : rails_) {
        VIP_MEM_ATTRIBUTES attributes = {rail->ptag, VIP_TRUE, VIP_FALSE};
        VIP_MEM_HANDLE& handle = held->handle[rail->index];
        if (VipRegisterMem(rail->nic, address, bytes, &attributes, &handle) != VIP_SUCCESS) handle = 0;
        any = any || handle != 0;
    }
    return any ? held.release() : nullptr;
}

void Rails::release(protocol::Registration* held) {
    for (const auto& rail : rails_) {
        const VIP_MEM_HANDLE handle = held->handle[rail->index];
        if (handle != 0) adi::let_go(VipDeregisterMem(rail->nic, reinterpret_cast<void*>(held->base), handle));
    }
    delete held;
}

// The write of a stripe and, by the caller, the frame that tells of it, which the VI keeps behind it.
bool Rails::write_stripe(Lane& lane, Packet* placed) {
    Transfer* t = placed->transfer;
    const size_t i = lane.rail->index;
    const VIP_MEM_HANDLE near = t->own->row(0).handle[i], far = t->theirs->row(0).handle[i];
    if (lane.with_nic + 2 > send_depth_ || near == 0 || far == 0) return false;
    Packet* p = get_packet();
    if (p == nullptr) return false;
    p->write = true;
    p->transfer = t;
    ++t->writes;
    p->bytes = placed->bytes;
    p->posted = Clock::now();
    VIP_DESCRIPTOR& d = p->desc;
    d.CS.SegCount = 2;
    d.CS.Control = VIP_CONTROL_OP_RDMAWRITE;
    d.CS.Reserved = 0;
    d.CS.Length = static_cast<VIP_UINT32>(placed->bytes);
    d.CS.Status = 0;
    d.DS[0].Remote.Data.AddressBits = placed->far;
    d.DS[0].Remote.Handle = far;
    d.DS[0].Remote.Reserved = 0;
    d.DS[1].Local.Data.Address = reinterpret_cast<void*>(placed->near);
    d.DS[1].Local.Handle = near;
    d.DS[1].Local.Length = static_cast<VIP_UINT32>(placed->bytes);
    ++lane.stripes;
    ++lane.rail->stripes;
    ++stripes_;
    lane.stripe_bytes += placed->bytes;
    hand_to_nic(lane, p);
    return !lane.suspect;
}

// How much the lane should take of what is left.
size_t stripe_size(const Bundle& bundle, const Lane& lane, size_t left, size_t most) {
    double all = 0;
    for (const Lane& other : bundle.lanes) {
        if (other.state == LaneState::up) all += other.bandwidth;
    }
    size_t bytes = kFirstStripe;
    if (lane.bandwidth > 0) {
        const double in_time = lane.bandwidth * std::chrono::duration<double>(kStripeTime).count();
        const double share = static_cast<double>(left) * lane.bandwidth / all;
        bytes = rounded(std::min(in_time, share));
    }
    const size_t least = std::min(kLeastStripe, most);
    bytes = std::clamp(bytes, least, most);
    if (left >= bytes + least) return bytes;
    return left <= most ? left : left - least;  // so that no rest below the least is left over
}

// The one with the fewest stripes under way that both sides have registered the memory with; nullptr: none has room.
Lane* Rails::choose_for_stripe(Bundle& bundle, const protocol::PieceList& near, const protocol::PieceList& far) {
    Lane* best = nullptr;
    for (size_t i = 0; i < kMostRails; ++i) {
        Lane& lane = bundle.lanes[i];
        if (!ready(lane) || lane.stripes >= kStripesAhead || near.row().handle[i] == 0 || far.row().handle[i] == 0)
            continue;
        if (best == nullptr || lane.stripes < best->stripes) best = &lane;
    }
    return best;
}

// The next stripe, and the frame that tells of it.
size_t Bundle::transfer(bool, const protocol::PieceList& near, const protocol::PieceList& far, size_t most,
                        Transfer& t) {
    if (next_sequence - oldest >= kWindow || !again.empty()) return 0;
    rails::Lane* lane = rails.choose_for_stripe(*this, near, far);
    Packet* p = lane == nullptr ? nullptr : rails.get_packet();
    if (p == nullptr) return 0;
    p->transfer = &t;
    p->near = near.address();
    p->far = far.address();
    p->bytes = std::min(most, stripe_size(*this, *lane, most, rails.most_stripe_));
    if (!rails.write_stripe(*lane, p)) {
        rails.release(p);
        return 0;
    }
    Frame frame = {};
    frame.type = FrameType::placed;
    frame.length = p->bytes;
    frame.rreq = t.peer_request;
    *frame_of(p) = frame;
    p->numbered = true;
    p->sequence = next_sequence++;
    sent[p->sequence % kWindow] = p;
    ++t.waited;
    const size_t bytes = p->bytes;
    rails.post(*lane, p, Kind::frame, sizeof(Header) + sizeof(Frame));
    return bytes;
}

// From when the lane began with them to when its NIC was found to be done. When nobody looked for a while,
// that is a lower bound only.
void Rails::measure(Lane& lane, Clock::time_point now) {
    const double seconds = std::chrono::duration<double>(now - lane.batch_began).count();
    const double found = static_cast<double>(lane.batch_bytes) / std::max(seconds, 1e-7);
    lane.batch_bytes = 0;
    lane.last_stripe = now;
    if (lane.bandwidth == 0) {
        lane.bandwidth = found;
    } else if (found > lane.bandwidth || now - last_pass_ < kLookedAway) {
        lane.bandwidth += kWeight * (found - lane.bandwidth);
    }
}

// All of it is at the peer, by its word and by that of our NICs.
void Rails::look_for_end(Transfer& t) {
    if (t.waited == 0 && t.writes == 0 && t.offset == t.end) landed(t);
}

}  // namespace viaduct::rails
