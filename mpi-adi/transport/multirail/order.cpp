// SPDX-License-Identifier: BSD-2-Clause
// One order over all lanes: frames get numbers when they leave, and are given out by them.
#include <algorithm>

#include "mpi-adi/transport/multirail/rails.hpp"

namespace viaduct::rails {

namespace {

constexpr double kSameLatency = 2;      // lanes up to so much slower than the fastest share first fragments
constexpr double kLatencyNoise = 2000;  // ns

}  // namespace

// Round-robin over the lanes of lowest latency; when none of them is ready, over the others. nullptr: none
// is.
Lane* Rails::choose(Bundle& bundle) {
    double least = 0;
    for (const Lane& lane : bundle.lanes) {
        if (lane.state == LaneState::up && (least == 0 || lane.latency_ns < least)) least = lane.latency_ns;
    }
    Lane* other = nullptr;
    for (size_t i = 0; i < kMostRails; ++i) {
        const size_t index = (bundle.next_lane + i) % kMostRails;
        Lane& lane = bundle.lanes[index];
        if (!ready(lane)) continue;
        if (lane.latency_ns <= least * kSameLatency + kLatencyNoise) {
            bundle.next_lane = (index + 1) % kMostRails;
            return &lane;
        }
        if (other == nullptr) other = &lane;
    }
    return other;
}

size_t Bundle::eager_limit(bool) const { return rails.eager_limit_; }

bool Bundle::put(const Frame& frame, const protocol::Payload& payload) {
    if (!again.empty()) rails.push_again(*this);
    const uint32_t under_way = next_sequence - oldest;
    // A lane that is out of turn may keep its last credits to itself, and with them the whole window.
    if (under_way >= kWindow / 2) rails.ask_for_word(*this);
    if (!again.empty() || under_way >= kWindow) return false;
    rails::Lane* lane = rails.choose(*this);
    Packet* p = lane == nullptr ? nullptr : rails.get_packet();
    if (p == nullptr) return false;
    *frame_of(p) = frame;
    payload.copy(payload_of(p), frame.bytes);
    p->numbered = true;
    p->sequence = next_sequence++;
    sent[p->sequence % kWindow] = p;
    ++lane->frames;
    rails.post(*lane, p, Kind::frame, sizeof(Header) + sizeof(Frame) + frame.bytes);
    return true;
}

// The echo of a probe tells of all that is there.
void Rails::ask_for_word(Bundle& bundle) {
    const Packet* oldest = bundle.sent[bundle.oldest % kWindow];
    if (oldest == nullptr || oldest->lane->probed) return;
    send_probe(*oldest->lane);
}

// What a broken lane has not brought over, on lanes that are left. Its stripe goes first and on the same one.
void Rails::push_again(Bundle& bundle) {
    while (!bundle.again.empty()) {
        Lane* lane = choose(bundle);
        if (lane == nullptr) return;
        Packet* p = bundle.again.back();
        if (p->transfer != nullptr && !write_stripe(*lane, p)) return;
        bundle.again.pop_back();
        ++bundle.resent;
        post(*lane, p, Kind::frame, sizeof(Header) + sizeof(Frame) + frame_of(p)->bytes);
    }
}

// The peer has told that it has this packet.
void Rails::here(Packet* p) {
    p->awaited = false;
    if (p->numbered) {
        Bundle& bundle = *p->lane->bundle;
        bundle.sent[p->sequence % kWindow] = nullptr;
        while (bundle.oldest != bundle.next_sequence && bundle.sent[bundle.oldest % kWindow] == nullptr)
            ++bundle.oldest;
        Transfer* t = p->transfer;
        p->transfer = nullptr;
        if (t != nullptr) {
            --t->waited;
            look_for_end(*t);
        }
    }
    if (!p->with_nic) release(p);
}

// A frame: given out when it is its turn, else kept. One that was here before is dropped.
bool Rails::take_frame(Bundle& bundle, Packet* p, size_t length, bool* kept) {
    if (length < sizeof(Header) + sizeof(Frame) ||
        frame_of(p)->bytes != length - sizeof(Header) - sizeof(Frame))
        return false;
    const FrameType type = frame_of(p)->type;
    if (type == FrameType::placed || type == FrameType::closing) p->lane->tell_soon = true;
    const uint32_t sequence = packet_as<Header>(p)->sequence;
    const uint32_t ahead = sequence - bundle.expected;
    if (ahead > UINT32_MAX / 2) return true;
    if (ahead >= kWindow) return false;
    Packet*& place = bundle.early[sequence % kWindow];
    if (place != nullptr) return true;
    place = p;
    *kept = true;
    if (ahead == 0 && opened_) give_out(bundle);
    return true;
}

void Rails::give_out(Bundle& bundle) {
    while (!bundle.peer.lost() && bundle.early[bundle.expected % kWindow] != nullptr) {
        Packet* p = bundle.early[bundle.expected % kWindow];
        bundle.early[bundle.expected % kWindow] = nullptr;
        ++bundle.expected;
        const bool good = incoming(bundle.peer, *frame_of(p), payload_of(p));
        release(p);
        if (!good) fail(bundle.peer, "it sent a frame that makes no sense here");
    }
    if (!bundle.peer.closing_had) return;
    for (Lane& lane : bundle.lanes) {
        if (lane.state == LaneState::up) want_chores(lane);
    }
}

}  // namespace viaduct::rails
