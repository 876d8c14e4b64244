// SPDX-License-Identifier: BSD-2-Clause
// How long messages are moved once that is agreed: in frames, by remote writes, by remote reads, or by both sides at
// once. A frame `placed` or `fetched` tells the side that has not moved the data. The design marks a long send done
// when its request has left; here it is done when its data has left.
#include "mpi-adi/transport/protocol/move.hpp"

#include <algorithm>

namespace viaduct::protocol {

size_t Lane::data_part(Transfer& t) const { return std::min(piece, t.end - t.offset); }

void Protocol::start_moving(Transfer& t) {
    Peer& p = *t.peer;
    t.fetching = t.theirs != nullptr && t.theirs->needs_fetching() && t.method != Method::frames;
    t.next = nullptr;
    (p.moving == nullptr ? p.moving : p.moving_last->next) = &t;
    p.moving_last = &t;
    p.lane->request_push();
}

void Protocol::finish(Transfer& t) {
    mpip_req_t* req = t.request;
    if (t.choice.timed) {  // of one that waited behind another, only its own part
        Peer& p = *t.peer;
        const uint64_t now = now_ns();
        if (t.choice.counts) p.tuner->tell(t.length, t.choice, now - std::max(t.began, p.last_measured));
        p.last_measured = now;
    }
    const bool sender = t.sends();
    const size_t message = t.message;
    drop_transfer(req);
    if (sender) {
        req->r_length = static_cast<int64_t>(req->r_bytes);
    } else {
        mpip_req_received(req, message);
    }
    mpip_req_done(req);
}

// One of the two parts is done.
void Protocol::finish_part(Transfer& t) {
    if (t.own_part_done && t.their_part_done) finish(t);
}

void Protocol::tell_placed(Transfer& t, size_t bytes) {
    Frame frame = {};
    frame.type = FrameType::placed;
    frame.length = bytes;
    frame.rreq = t.peer_request;
    control(*t.peer, frame);
}

bool Protocol::push_data(Transfer& t) {
    Frame frame = {};
    frame.type = FrameType::data;
    frame.bytes = static_cast<uint32_t>(t.peer->lane->data_part(t));
    frame.length = t.offset;
    frame.rreq = t.peer_request;
    if (!t.peer->lane->put(frame, {nullptr, t.request, t.offset})) return false;
    t.offset += frame.bytes;
    return true;
}

bool Protocol::push_part(Transfer& t) {
    const bool write = t.sends();
    const size_t left = t.end - t.offset;
    const size_t now = t.peer->lane->transfer(write, *t.own, *t.theirs, left, t);
    if (now == 0) return false;
    t.offset += now;
    t.own->advance(now);
    t.theirs->advance(now);
    return true;
}

bool Protocol::fetch_list(Transfer& t) {
    const PieceListPtr near = t.theirs->room_for_list(*rules_.memory), far = t.theirs->far_list();
    const size_t bytes = near->left();
    if (t.peer->lane->transfer(false, *near, *far, bytes, t) == 0) return false;
    ++counters_->mc_lists;
    return true;
}

// What can be moved of the first long message; false: it has to wait.
bool Protocol::move_first(Peer& p) {
    Transfer& t = *p.moving;
    if (t.fetching) {
        if (!fetch_list(t)) return false;
        p.moving = t.next;  // comes back with its list
        return true;
    }
    const size_t began = t.offset;
    while (t.offset < t.end) {
        if (!(t.method == Method::frames ? push_data(t) : push_part(t))) return t.offset != began;
    }
    p.moving = t.next;
    if (t.method == Method::frames) {
        finish(t);
        return true;
    }
    moved_ = true;
    // The lane keeps order: this arrives after all that was written (spec/adi H5).
    if (t.sends() && !rules_.reports_parts && !t.one_sided) tell_placed(t, t.end - t.first);
    return true;
}

void Protocol::finish_done_transfers() {
    while (done_ != nullptr) {
        Transfer& t = *done_;
        done_ = t.next;
        if (t.peer->upper != nullptr) {
            t.peer->upper->on_moved(t);
            continue;
        }
        if (t.fetching) {
            if (!t.theirs->take_fetched(t.sends() ? t.length : t.message)) {
                fail(*t.peer, "its list of pieces is invalid");
                continue;
            }
            start_moving(t);
            push(*t.peer);
            continue;
        }
        if (!t.sends() && !t.one_sided) {
            Frame frame = {};
            frame.type = FrameType::fetched;
            frame.length = t.end;
            frame.sreq = t.peer_request;
            control(*t.peer, frame);
        }
        if (t.method == Method::both) {
            t.own_part_done = true;
            finish_part(t);
        } else {
            finish(t);
        }
    }
}

bool Protocol::incoming_data(Peer& p, const Frame& frame, const void* payload) {
    Transfer* t = find_transfer(p, frame.rreq, false);
    if (t == nullptr || reads(t->method) || frame.bytes == 0 || frame.bytes > t->length - t->offset) return false;
    if (static_cast<uint32_t>(frame.length) != static_cast<uint32_t>(t->offset)) return false;
    mpip_req_deliver(t->request, t->offset, payload, frame.bytes);
    t->offset += frame.bytes;
    if (t->offset == t->length) finish(*t);
    return true;
}

// Of several lanes not all may reach memory.
bool Protocol::incoming_part(Peer& p, const Frame& frame, const void* payload) {
    Transfer* t = find_transfer(p, frame.rreq, false);
    if (t == nullptr || !rules_.reports_parts || (t->method != Method::put && t->method != Method::both) ||
        frame.bytes == 0)
        return false;
    const size_t first = t->method == Method::both ? t->end : 0;
    if (frame.length < first || frame.length > t->length || frame.bytes > t->length - frame.length) return false;
    mpip_req_deliver(t->request, frame.length, payload, frame.bytes);
    Frame placed = frame;
    placed.length = frame.bytes;
    return incoming_placed(p, placed);
}

// A sender that has no registration left goes on in frames, so parts written and frames may not be mixed in
// one message, but either may follow a reply that asks for writes.
bool Protocol::incoming_placed(Peer& p, const Frame& frame) {
    Transfer* t = find_transfer(p, frame.rreq, false);
    if (t == nullptr) return false;
    if (t->method == Method::both) {
        const size_t left = t->length - t->end - t->placed;
        if (t->their_part_done || frame.length > left || (frame.length == 0 && left != 0)) return false;
        t->placed += frame.length;
        t->their_part_done = t->placed == t->length - t->end;
        if (t->their_part_done) finish_part(*t);
        return true;
    }
    if (t->method != Method::put || frame.length == 0 || frame.length > t->length - t->offset) return false;
    t->offset += frame.length;
    if (t->offset == t->length) finish(*t);
    return true;
}

bool Protocol::incoming_fetched(Peer& p, const Frame& frame) {
    Transfer* t = find_transfer(p, frame.sreq, true);
    if (t == nullptr || !reads(t->method) || t->own == nullptr) return false;
    if (t->replied) {
        if (t->method != Method::both || t->their_part_done) return false;
        t->their_part_done = true;
        finish_part(*t);
        return true;
    }
    finish(*t);
    return true;
}

}  // namespace viaduct::protocol
