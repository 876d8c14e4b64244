// SPDX-License-Identifier: BSD-2-Clause
// Receiving, one frame at a time; every field is checked before it is used.
#include <new>

#include "mpi-adi/transport/adi/blocking.hpp"
#include "mpi-adi/transport/protocol/peer.hpp"

namespace viaduct::protocol {

// Between the parts of a message nothing else comes (spec/adi C53).
bool Protocol::may_come(const Peer& p, const Frame& frame) {
    if (p.upper == nullptr) return frame.type == FrameType::next;
    return frame.type == FrameType::carried || (frame.type == FrameType::eager && frame.length == frame.bytes);
}

bool Protocol::incoming(Peer& p, const Frame& frame, const void* payload) {
    if (frame.bytes != 0 && !may_carry(frame.type)) return false;
    if (p.restricted && !may_come(p, frame)) return false;
    switch (frame.type) {
        case FrameType::eager:
            return incoming_eager(p, frame, payload);
        case FrameType::next:
            return incoming_next(p, frame, payload);
        case FrameType::request:
            return incoming_request(p, frame, payload);
        case FrameType::reply:
            return incoming_reply(p, frame, payload);
        case FrameType::data:
            return incoming_data(p, frame, payload);
        case FrameType::part:
            return incoming_part(p, frame, payload);
        case FrameType::placed:
            return incoming_placed(p, frame);
        case FrameType::fetched:
            return incoming_fetched(p, frame);
        case FrameType::cancel:
            return incoming_cancel(p, frame);
        case FrameType::cancel_reply:
            return incoming_cancel_reply(p, frame);
        case FrameType::closing:
            if (p.closing_received) return false;
            p.closing_received = true;
            p.proc->p_flags |= MPIP_PROC_LEFT;
            return true;
        case FrameType::envelopes_only:
            p.stops =
                static_cast<uint8_t>((p.stops & ~Peer::envelopes) | (frame.flags != 0 ? Peer::envelopes : 0));
            return true;
        case FrameType::carried:
            if (p.upper == nullptr) return false;
            p.upper->on_carried(p, payload, frame.bytes);
            return true;
    }
    return false;
}

bool Protocol::incoming_eager(Peer& p, const Frame& frame, const void* payload) {
    const int mode = frame.flags & MPIP_MODE_READY;
    if (frame.length == frame.bytes) [[likely]] {
        incoming_whole(p, frame.context, frame.tag, frame.rank, mode, payload, frame.bytes);
        return true;
    }
    if (frame.length > INT64_MAX || frame.bytes == 0 || frame.bytes > frame.length) return false;
    const envelope env = {
        frame.context, mode, frame.rank, frame.tag, static_cast<int64_t>(frame.length), 0, 0};
    auto* s = new Series;
    s->kind = Held::Kind::series;
    s->peer = &p;
    s->total = frame.length;
    mpip_req_t* match = nullptr;
    switch (mpip_up.arrived(p.proc, &env, payload, frame.bytes, s, &match)) {
        case MPIP_IN_TAKEN:
            delete s;
            return false;
        case MPIP_IN_MATCHED:
            attach(*s, match);
            break;
        default:
            ++counters_->mc_unexpected;
            break;
    }
    p.series = s;
    p.restricted = true;
    if (!place(*s, payload, frame.bytes)) return false;
    settle(p, s);
    return true;
}

bool Protocol::incoming_next(Peer& p, const Frame& frame, const void* payload) {
    Series* s = p.series;
    if (s == nullptr || frame.bytes == 0 || frame.bytes > s->total - s->got ||
        !place(*s, payload, frame.bytes))
        return false;
    settle(p, s);
    return true;
}

// Into the receive, or to what waits for one. Memory follows what has come, not what was announced. False:
// there is none.
bool Protocol::place(Series& s, const void* data, size_t bytes) {
    if (s.request != nullptr) {
        mpip_req_deliver(s.request, s.got, data, bytes);
    } else if (!s.abandoned) {
        const auto* at = static_cast<const char*>(data);
        try {
            s.data.insert(s.data.end(), at, at + bytes);
        } catch (const std::bad_alloc&) {
            return false;
        }
    }
    s.got += bytes;
    return true;
}

// A part may have been the last one.
void Protocol::settle(Peer& p, Series* s) {
    p.series = s->got < s->total ? s : nullptr;
    p.restricted = p.series != nullptr;
    if (p.series != nullptr) return;
    if (s->request != nullptr) {
        finish_series(s);
    } else if (s->abandoned) {
        delete s;
    }
}

void Protocol::attach(Series& s, mpip_req_t* req) {
    s.request = req;
    req->r_state |= MPIP_REQ_STARTED;
    req->r_proc = s.peer->proc;
    req->r_data = nullptr;
    ids_.add(req);  // so that it is found when the peer is lost
}

void Protocol::finish_series(Series* s) {
    mpip_req_t* req = s->request;
    const size_t total = s->total;
    ids_.remove(req);
    delete s;
    mpip_req_received(req, total);
    mpip_req_done(req);
}

void Protocol::deliver_series(Series* s, mpip_req_t* req) {
    mpip_req_deliver(req, 0, s->data.data(), s->data.size());
    s->data = {};
    attach(*s, req);
    if (s->got == s->total) {
        finish_series(s);
    } else if (s->peer->lost()) {
        ids_.remove(req);
        delete s;
        adi::end_request(req, MPIP_ERR_PROC_FAILED);
    }
}

int Protocol::uirecv(unexmsg_t* message, mpip_req_t* req) {
    Held* held = static_cast<Held*>(message->um_data);
    message->um_data = nullptr;
    if (held->kind == Held::Kind::series) {
        deliver_series(static_cast<Series*>(held), req);
        return MPIP_SUCCESS;
    }
    const std::unique_ptr<Start> start(static_cast<Start*>(held));
    if (start->peer->lost()) {
        adi::end_request(req, MPIP_ERR_PROC_FAILED);
    } else {
        start_receive(*start, req);
    }
    return MPIP_SUCCESS;
}

void Protocol::ufree(unexmsg_t* message) {
    Held* held = static_cast<Held*>(message->um_data);
    message->um_data = nullptr;
    if (held == nullptr) return;
    if (held->kind == Held::Kind::start) {
        delete static_cast<Start*>(held);
        return;
    }
    auto* s = static_cast<Series*>(held);
    s->data = {};
    s->abandoned = true;
    if (s->got == s->total || s->peer->lost()) delete s;
}

}  // namespace viaduct::protocol
