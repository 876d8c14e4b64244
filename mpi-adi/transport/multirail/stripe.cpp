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

// What a receive holds while the peer writes into it.
struct Target {
    VIP_MEM_HANDLE handle[kMostRails] = {};
};

size_t rounded(double bytes) {
    return (static_cast<size_t>(bytes) + kStripeUnit - 1) / kStripeUnit * kStripeUnit;
}

}  // namespace

bool Rails::offer(stream::Connection& c, stream::Transfer& t, std::vector<char>& how) {
    mpip_req_t* req = t.request;
    if (t.length < kDirectFrom || !mpip_req_is_contig(req)) return false;
    auto target = std::make_unique<Target>();
    Landing landing = {};
    landing.address = reinterpret_cast<uint64_t>(req->r_buf);
    bool any = false;
    for (const Lane& lane : peer_of(c)->lanes) {
        if (lane.state == LaneState::absent) continue;
        VIP_MEM_ATTRIBUTES attributes = {lane.rail->ptag, VIP_TRUE, VIP_FALSE};
        VIP_MEM_HANDLE& handle = target->handle[lane.rail->index];
        if (VipRegisterMem(lane.rail->nic, req->r_buf, t.length, &attributes, &handle) != VIP_SUCCESS)
            handle = 0;
        landing.handle[lane.rail->index] = handle;
        any = any || handle != 0;
    }
    if (!any) return false;
    t.direct = target.release();
    how.resize(sizeof landing);
    std::memcpy(how.data(), &landing, sizeof landing);
    return true;
}

// What a receive holds, or a send that has got no answer yet; later, what a send holds is in use, and freed
// by others.
void Rails::dropped(stream::Transfer& t) {
    if ((t.request->r_flags & MPIP_REQ_SEND) != 0) {
        free_move(static_cast<Move*>(t.direct));
        t.direct = nullptr;
        return;
    }
    auto* target = static_cast<Target*>(t.direct);
    for (const auto& rail : rails_) {
        const VIP_MEM_HANDLE handle = target->handle[rail->index];
        if (handle != 0) adi::let_go(VipDeregisterMem(rail->nic, t.request->r_buf, handle));
    }
    delete target;
    t.direct = nullptr;
}

// Registers what is to be sent with every NIC while the envelope is on its way, if the other side is likely
// to want it written.
void Rails::prefetch(stream::Connection& c, stream::Transfer& t) {
    if (t.length < kDirectFrom || !mpip_req_is_contig(t.request)) return;
    Peer& peer = *peer_of(c);
    auto* move = new Move{&t, &peer, 0, {}, {}, 0, 0, 0, false};
    for (const Lane& lane : peer.lanes) {
        if (lane.state == LaneState::absent) continue;
        VIP_MEM_ATTRIBUTES attributes = {lane.rail->ptag, VIP_FALSE, VIP_FALSE};
        VIP_MEM_HANDLE& handle = move->local[lane.rail->index];
        if (VipRegisterMem(lane.rail->nic, t.request->r_buf, t.length, &attributes, &handle) != VIP_SUCCESS)
            handle = 0;
    }
    t.direct = move;
}

bool Rails::take_up(stream::Connection& c, stream::Transfer& t, const void* payload, size_t bytes) {
    if (bytes != sizeof(Landing)) return false;
    Landing landing;
    std::memcpy(&landing, payload, sizeof landing);
    Peer& peer = *peer_of(c);
    if (t.direct == nullptr) prefetch(c, t);
    auto* move = static_cast<Move*>(t.direct);
    bool any = false;
    for (size_t i = 0; i < kMostRails && move != nullptr; ++i) {
        move->remote[i] = move->local[i] != 0 ? static_cast<uint32_t>(landing.handle[i]) : 0;
        any = any || move->remote[i] != 0;
    }
    if (!any) {
        if (move != nullptr) dropped(t);
        c.sending.push_back(&t);  // as frames then, which the receiver takes as well
        return true;
    }
    move->address = landing.address;
    ++adi::counters[MPIP_PROTO_VIA].mc_rput;
    peer.moves.push_back(move);
    push_moves(peer);
    return true;
}

void Rails::free_move(Move* move) {
    for (const auto& rail : rails_) {
        const VIP_MEM_HANDLE handle = move->local[rail->index];
        if (handle != 0) adi::let_go(VipDeregisterMem(rail->nic, move->transfer->request->r_buf, handle));
    }
    delete move;
}

// The write of a stripe and, by the caller, the frame that tells of it, which the VI keeps behind it.
bool Rails::write_stripe(Lane& lane, Packet* placed) {
    Move* move = placed->move;
    const size_t i = lane.rail->index;
    if (lane.with_nic + 2 > send_depth_ || move->remote[i] == 0) return false;
    Packet* p = get_packet();
    if (p == nullptr) return false;
    p->write = true;
    p->move = move;
    ++move->writes;
    p->bytes = placed->bytes;
    p->posted = Clock::now();
    VIP_DESCRIPTOR& d = p->desc;
    d.CS.SegCount = 2;
    d.CS.Control = VIP_CONTROL_OP_RDMAWRITE;
    d.CS.Reserved = 0;
    d.CS.Length = static_cast<VIP_UINT32>(placed->bytes);
    d.CS.Status = 0;
    d.DS[0].Remote.Data.AddressBits = move->address + placed->offset;
    d.DS[0].Remote.Handle = move->remote[i];
    d.DS[0].Remote.Reserved = 0;
    d.DS[1].Local.Data.Address = static_cast<char*>(move->transfer->request->r_buf) + placed->offset;
    d.DS[1].Local.Handle = move->local[i];
    d.DS[1].Local.Length = static_cast<VIP_UINT32>(placed->bytes);
    ++lane.stripes;
    ++lane.rail->stripes;
    ++stripes_;
    lane.stripe_bytes += placed->bytes;
    hand_to_nic(lane, p);
    return !lane.suspect;
}

// How much the lane should take of what is left.
size_t stripe_size(const Peer& peer, const Lane& lane, size_t left, size_t most) {
    double all = 0;
    for (const Lane& other : peer.lanes) {
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

bool Rails::push_stripe(Lane& lane, Move* move) {
    Peer& peer = *move->peer;
    if (peer.next_sequence - peer.oldest >= kWindow || !peer.again.empty()) return false;
    const size_t left = move->transfer->length - move->offset;
    const size_t bytes = std::min(left, stripe_size(peer, lane, left, most_stripe_));
    Packet* p = get_packet();
    if (p == nullptr) return false;
    p->move = move;
    p->offset = move->offset;
    p->bytes = bytes;
    if (!write_stripe(lane, p)) {
        release(p);
        return false;
    }
    Frame frame = {};
    frame.type = FrameType::placed;
    frame.length = bytes;
    frame.rreq = move->transfer->peer_request;
    *frame_of(p) = frame;
    p->numbered = true;
    p->sequence = peer.next_sequence++;
    peer.sent[p->sequence % kWindow] = p;
    move->offset += bytes;
    ++move->stripes;
    post(lane, p, Kind::frame, sizeof(Header) + sizeof(Frame));
    return true;
}

// Hands out stripes while lanes have room, the message begun first first.
bool Rails::push_moves(Peer& peer) {
    bool pushed = false;
    for (bool more = true; more && !peer.moves.empty() && !peer.lost;) {
        more = false;
        for (size_t i = 0; i < kMostRails && !peer.moves.empty(); ++i) {
            Lane& lane = peer.lanes[i];
            Move* move = peer.moves.front();
            if (!ready(lane) || lane.stripes >= kStripesAhead || move->remote[i] == 0) continue;
            if (!push_stripe(lane, move)) continue;
            more = pushed = true;
            if (move->offset == move->transfer->length) peer.moves.pop_front();
        }
    }
    return pushed;
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
void Rails::look_for_end(Move* move) {
    if (move->stripes != 0 || move->writes != 0 || move->offset != move->transfer->length) return;
    if (move->finished) return;
    move->finished = true;
    finished_.push_back(move);
}

// Requests end here, from the top, not in the middle of what found it out.
void Rails::end_moves() {
    while (!finished_.empty()) {
        Move* move = finished_.back();
        finished_.pop_back();
        stream::Transfer* t = move->transfer;
        t->direct = nullptr;
        free_move(move);
        placed_all(t);
    }
}

}  // namespace viaduct::rails
