// SPDX-License-Identifier: BSD-2-Clause
// Sends leave the queue of their process in order, each when its first frame has. A message short enough
// waits for room: a handshake would make its send wait for its receive.
#include <algorithm>

#include "mpi-adi/transport/protocol/peer.hpp"

namespace viaduct::protocol {

void Protocol::first_is_sent(Peer& p) {
    ++counters_->mc_eager;
    mpip_req_t* req = mpip_deqsend(p.proc);
    req->r_length = static_cast<int64_t>(req->r_bytes);
    mpip_req_done(req);
}

// A message in one frame, or in several with nothing between them. False: the rest waits.
bool Protocol::start_eager(Peer& p, mpip_req_t* req, size_t part) {
    do {
        Frame frame = {};
        const bool first = p.series_sent == 0;
        frame.type = first ? FrameType::eager : FrameType::next;
        frame.bytes = static_cast<uint32_t>(std::min(part, req->r_bytes - p.series_sent));
        if (first) {
            frame.flags = static_cast<uint8_t>(req->r_mode & MPIP_MODE_READY);
            frame.context = req->r_ctxt;
            frame.tag = req->r_tag;
            frame.rank = req->r_rank;
            frame.length = req->r_bytes;
        }
        if (!p.lane->put(frame, {nullptr, req, p.series_sent})) return false;
        p.series_sent += frame.bytes;
        if (p.series_sent < req->r_bytes) p.stops |= Peer::series_out;
    } while (p.series_sent < req->r_bytes);
    p.series_sent = 0;
    p.stops &= static_cast<uint8_t>(~Peer::series_out);
    first_is_sent(p);
    return true;
}

// One request off the queue; false: it has to wait.
bool Protocol::start(Peer& p, mpip_req_t* req) {
    const bool contiguous = mpip_req_is_contig(req);
    const bool short_enough = (req->r_mode & MPIP_MODE_SYNC) == 0 && (p.stops & Peer::envelopes) == 0 &&
                              req->r_bytes <= p.lane->eager_limit(contiguous);
    if (short_enough || (p.stops & Peer::series_out) != 0)
        return start_eager(p, req, p.lane->eager_part(contiguous));
    return start_long(p, req);
}

void Protocol::control(Peer& p, const Frame& frame, const std::vector<char>* payload) {
    if (p.lost()) return;
    const void* data = payload != nullptr ? payload->data() : nullptr;
    if ((p.stops & (Peer::waits | Peer::series_out | Peer::unready)) == 0 && p.lane->put(frame, {data}))
        return;
    ++counters_->mc_backlogged;
    p.waiting.push_back({frame, payload != nullptr ? *payload : std::vector<char>()});
    p.stops |= Peer::waits;
}

int Protocol::push(Peer& p) {
    int done = 0;
    if (p.lost()) return 0;
    if (!p.ready()) {
        if (p.blocked()) p.lane->start_connecting();
        return 0;
    }
    if ((p.stops & Peer::series_out) != 0) {
        if (!start(p, p.proc->p_sendhead)) return 0;
        ++done;
    }
    while (!p.waiting.empty() && p.lane->put(p.waiting.front().frame, {p.waiting.front().payload.data()})) {
        p.waiting.pop_front();
        ++done;
    }
    if (!p.waiting.empty()) return done;
    p.stops &= static_cast<uint8_t>(~Peer::waits);
    while (p.moving != nullptr && move_first(p)) {
        ++done;
        // A copy by this processor takes microseconds.
        if (moved_) {
            if (p.blocked()) p.lane->request_push();
            break;
        }
    }
    while (!p.lost() && (p.stops & Peer::waits) == 0 && p.proc->p_sendhead != nullptr &&
           start(p, p.proc->p_sendhead))
        ++done;
    return done;
}

void Protocol::queued_send(process_t* proc) {
    Peer& p = *peer_of(proc);
    if (p.lost()) {
        while (proc->p_sendhead != nullptr) {
            mpip_req_t* req = mpip_deqsend(proc);
            req->r_error = MPIP_ERR_PROC_FAILED;
            mpip_req_done(req);
        }
        return;
    }
    if (!p.ready()) return p.lane->start_connecting();
    if ((p.stops & Peer::waits) != 0) return;
    while (proc->p_sendhead != nullptr && start(p, proc->p_sendhead)) {
    }
}

}  // namespace viaduct::protocol
