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
Lane* Rails::choose(Peer& peer) {
    double least = 0;
    for (const Lane& lane : peer.lanes) {
        if (lane.state == LaneState::up && (least == 0 || lane.latency_ns < least)) least = lane.latency_ns;
    }
    Lane* other = nullptr;
    for (size_t i = 0; i < kMostRails; ++i) {
        const size_t index = (peer.next_lane + i) % kMostRails;
        Lane& lane = peer.lanes[index];
        if (!ready(lane)) continue;
        if (lane.latency_ns <= least * kSameLatency + kLatencyNoise) {
            peer.next_lane = (index + 1) % kMostRails;
            return &lane;
        }
        if (other == nullptr) other = &lane;
    }
    return other;
}

bool Rails::put(stream::Connection& c, const Frame& frame, const void* payload, const mpip_req_t* source,
                size_t offset) {
    Peer& peer = *peer_of(c);
    if (!peer.again.empty()) push_again(peer);
    const uint32_t under_way = peer.next_sequence - peer.oldest;
    // A lane that is out of turn may keep its last credits to itself, and with them the whole window.
    if (under_way >= kWindow / 2) ask_for_word(peer);
    if (!peer.again.empty() || under_way >= kWindow) return false;
    Lane* lane = choose(peer);
    Packet* p = lane == nullptr ? nullptr : get_packet();
    if (p == nullptr) return false;
    *frame_of(p) = frame;
    if (source != nullptr) {
        mpip_req_collect(source, offset, payload_of(p), frame.bytes);
    } else if (frame.bytes != 0) {
        std::memcpy(payload_of(p), payload, frame.bytes);
    }
    p->numbered = true;
    p->sequence = peer.next_sequence++;
    peer.sent[p->sequence % kWindow] = p;
    ++lane->frames;
    post(*lane, p, Kind::frame, sizeof(Header) + sizeof(Frame) + frame.bytes);
    return true;
}

// The echo of a probe tells of all that is there.
void Rails::ask_for_word(Peer& peer) {
    const Packet* oldest = peer.sent[peer.oldest % kWindow];
    if (oldest == nullptr || oldest->lane->probed) return;
    send_probe(*oldest->lane);
}

// What a broken lane has not brought over, on lanes that are left. Its stripe goes first and on the same one.
void Rails::push_again(Peer& peer) {
    while (!peer.again.empty()) {
        Lane* lane = choose(peer);
        if (lane == nullptr) return;
        Packet* p = peer.again.back();
        if (p->move != nullptr && !write_stripe(*lane, p)) return;
        peer.again.pop_back();
        ++peer.resent;
        post(*lane, p, Kind::frame, sizeof(Header) + sizeof(Frame) + frame_of(p)->bytes);
    }
}

// The peer has told that it has this packet.
void Rails::here(Packet* p) {
    p->awaited = false;
    if (p->numbered) {
        Peer& peer = *p->lane->peer;
        peer.sent[p->sequence % kWindow] = nullptr;
        while (peer.oldest != peer.next_sequence && peer.sent[peer.oldest % kWindow] == nullptr)
            ++peer.oldest;
        Move* move = p->move;
        p->move = nullptr;
        if (move != nullptr) {
            --move->stripes;
            look_for_end(move);
        }
    }
    if (!p->with_nic) release(p);
}

// A frame: given out when it is its turn, else kept. One that was here before is dropped.
bool Rails::take_frame(Peer& peer, Packet* p, size_t length, bool* kept) {
    if (length < sizeof(Header) + sizeof(Frame) ||
        frame_of(p)->bytes != length - sizeof(Header) - sizeof(Frame))
        return false;
    const FrameType type = frame_of(p)->type;
    if (type == FrameType::placed || type == FrameType::closing) p->lane->tell_soon = true;
    const uint32_t sequence = packet_as<Header>(p)->sequence;
    const uint32_t ahead = sequence - peer.expected;
    if (ahead > UINT32_MAX / 2) return true;
    if (ahead >= kWindow) return false;
    Packet*& place = peer.early[sequence % kWindow];
    if (place != nullptr) return true;
    place = p;
    *kept = true;
    if (ahead == 0 && opened_) give_out(peer);
    return true;
}

void Rails::give_out(Peer& peer) {
    while (!peer.lost && peer.early[peer.expected % kWindow] != nullptr) {
        Packet* p = peer.early[peer.expected % kWindow];
        peer.early[peer.expected % kWindow] = nullptr;
        ++peer.expected;
        const bool good = incoming(peer, *frame_of(p), payload_of(p));
        release(p);
        if (!good) fail(peer, "it sent a frame that makes no sense here");
    }
    if (!peer.goodbye_had) return;
    for (Lane& lane : peer.lanes) {
        if (lane.state == LaneState::up) want_chores(lane);
    }
}

}  // namespace viaduct::rails
