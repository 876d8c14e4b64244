// SPDX-License-Identifier: BSD-2-Clause
// The life of a peer: its record, memory pressure, failure, and closing, which both sides announce before anything is
// disconnected (spec/adi F13, H7).
#include <chrono>

#include "mpi-adi/transport/adi/blocking.hpp"
#include "mpi-adi/transport/adi/error.hpp"
#include "mpi-adi/transport/adi/params.hpp"
#include "mpi-adi/transport/protocol/peer.hpp"

namespace viaduct::protocol {

namespace {

int hand_to_upper(process_t* proc, const envelope* env, const void* data, size_t, void*, mpip_req_t**) {
    Peer& p = *peer_of(proc);
    p.upper->on_whole(p, *env, data);
    return MPIP_IN_TAKEN;
}

}  // namespace

Peer& Protocol::add_peer(size_t rank, process_t* proc, UpperLayer* upper) {
    auto p = std::make_unique<Peer>();
    p->rank = static_cast<uint32_t>(rank);
    p->proc = proc;
    p->protocol = this;
    proc->p_pm = p.get();
    p->upper = upper;
    p->arrived = upper != nullptr ? hand_to_upper : mpip_up.arrived;
    p->restricted = upper != nullptr;
    if (upper == nullptr) ++table_->pt_nprocs;
    peers_[rank] = std::move(p);
    return *peers_[rank];
}

void Protocol::drop_peers() {
    for (const auto& p : peers_) {
        if (p != nullptr) p->proc->p_pm = nullptr;
    }
    peers_.clear();
    table_->pt_nprocs = 0;
}

void Protocol::renew(Peer& p) {
    p.stops = Peer::unready;
    p.proc->p_flags = 0;
}

void Protocol::fail(Peer& p, const char* why) {
    if (p.lost()) return;
    p.stops |= Peer::ended;
    p.lane->cut();
    finish_done_transfers();
    p.proc->p_flags |= MPIP_PROC_TRANSPORTERR;
    p.waiting.clear();
    p.moving = nullptr;
    if (p.upper != nullptr) return p.upper->on_lost(p);
    if (p.series != nullptr && (p.series->request != nullptr || p.series->abandoned)) delete p.series;
    p.series = nullptr;
    for (mpip_req_t* req : ids_.of(p.proc)) {
        drop_transfer(req);
        adi::end_request(req, MPIP_ERR_PROC_FAILED);
    }
    while (p.proc->p_sendhead != nullptr) adi::end_request(mpip_deqsend(p.proc), MPIP_ERR_PROC_FAILED);
    // The end of another job's process is reported to the engine in any case: receives may wait for it.
    if (p.closing_received && (p.proc->p_flags & MPIP_PROC_ROBUST) == 0) return;
    adi::fail(MPIP_ERR_PROC_FAILED, "process %u is lost: %s", p.rank, why);
    mpip_up.peer_failed(p.proc, MPIP_ERR_PROC_FAILED);
}

void Protocol::error_request(mpip_req_t* req) {
    if (ids_.find(req->r_id) != req) return;
    Peer& p = *peer_of(req->r_proc);
    Transfer* t = transfer_of(req);
    bool moves = t == nullptr || t->fetching || t->offset != 0;
    for (const Transfer* one = p.moving; one != nullptr && !moves; one = one->next) moves = one == t;
    if (moves) return fail(p, "the engine ended one of its requests underway");  // which ends this one too
    drop_transfer(req);
    adi::end_request(req, MPIP_ERR_PROC_FAILED);
}

namespace {

Frame pressure_frame(bool on) {
    Frame frame = {};
    frame.type = FrameType::envelopes_only;
    frame.flags = on ? 1 : 0;
    return frame;
}

}  // namespace

void Protocol::lane_ready(Peer& p) {
    p.stops &= static_cast<uint8_t>(~Peer::unready);
    p.proc->p_flags |= MPIP_PROC_ATTACHED;
    if (p.upper != nullptr) return p.upper->on_lane_ready(p);
    if (pressure_) control(p, pressure_frame(true));
    push(p);
}

void Protocol::pressure(bool on) {
    if (pressure_ == on) return;
    pressure_ = on;
    for (const auto& p : peers_) {
        if (p != nullptr && p->ready()) control(*p, pressure_frame(on));
    }
}

// Sends `closing` when everything is sent. True: both sides have sent it and it has left, or the peer is lost.
bool Protocol::finish_close(Peer& p) {
    if (p.lost()) return true;
    push(p);
    if (p.blocked()) return false;
    if (!p.ready()) return !p.lane->is_being_made();  // without a connection nothing is left to close
    if (!p.closing_sent) {
        Frame frame = {};
        frame.type = FrameType::closing;
        p.closing_sent = p.lane->put(frame, {});
    }
    return p.closing_sent && p.closing_received && p.lane->flushed();
}

int Protocol::close(process_t** procs, int count) {
    using Clock = std::chrono::steady_clock;
    std::vector<Peer*> all;
    if (procs == nullptr) {
        for (const auto& p : peers_) {
            if (p != nullptr) all.push_back(p.get());
        }
    } else {
        for (int i = 0; i < count; ++i) {
            if ((procs[i]->p_flags & MPIP_PROC_REMOVED) != 0 && procs[i]->p_pm != nullptr)
                all.push_back(peer_of(procs[i]));
        }
    }
    const long limit = adi::param_number(adi::Param::close_timeout);
    const auto deadline = Clock::now() + std::chrono::seconds(limit);
    int rc = MPIP_SUCCESS;
    for (;;) {
        // All in one pass: one after the other, each would cost a turn of both processes.
        bool done = true;
        for (Peer* p : all) done = finish_close(*p) && done;
        if (done) break;
        rc = mpip_up.progress();
        if (rc < 0) return -rc;
        rc = MPIP_SUCCESS;
        if (limit != 0 && Clock::now() >= deadline) {
            rc = adi::fail(MPIP_ERR_OTHER, "not all processes have closed within %ld s", limit);
            break;
        }
    }
    for (Peer* p : all) {
        if (!p->lost()) {
            p->stops |= Peer::ended;
            p->lane->cut();
        }
        adi::detach(p->proc);
    }
    return rc;
}

int Protocol::ping(process_t* proc) {
    Peer* p = peer_of(proc);
    if (p == nullptr) return MPIP_ERR_PROC_FAILED;
    while (!p->ready() && !p->lost()) {
        p->lane->start_connecting();
        const int rc = mpip_up.progress();
        if (rc < 0) return -rc;
    }
    return !p->lost() && p->lane->is_connected() ? MPIP_SUCCESS : MPIP_ERR_PROC_FAILED;
}

}  // namespace viaduct::protocol
