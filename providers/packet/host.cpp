// SPDX-License-Identifier: BSD-2-Clause
// What the wire protocol asks of us, done on the VI's queues; for the peer's work on our memory see host_rdma.cpp. The
// engine's lock is held; each call takes the queue's lock that it needs, unless this thread held it before.
#include "core/copy/copy.hpp"
#include "providers/packet/host_parts.hpp"
#include "providers/packet/plain_descriptor.hpp"

namespace viaduct::packet {

namespace {

// Makes ep.from stand at that byte of the work's memory. False: it may not be read. S held.
bool seek_source(Endpoint& ep, uint32_t tag, uint32_t offset) {
    if (ep.from_valid && ep.from_tag == tag && ep.from_offset == offset) return true;
    const VIP_DESCRIPTOR* d = ep.vi->send.at(tag);
    ep.from_valid = false;
    ep.from.begin(d, d->CS.Length, ep.vi->regions, ep.vi->ptag);
    for (uint32_t skip = offset, piece = 0; skip != 0; skip -= piece)
        if (ep.from.next(skip, &piece) == nullptr) return false;
    ep.from_valid = true;
    ep.from_tag = tag;
    ep.from_offset = offset;
    return true;
}

// The peer's finding is the cause of the descriptor that fails next. S held.
void note_peers_cause(Endpoint& ep, const WorkQueue& q) {
    if (ep.peers_cause) ep.vi->cause_of(q) = {ep.peers_cause, true};
}

}  // namespace

// ---- our own work

bool Engine::read_source(Cookie cookie, uint32_t tag, uint32_t offset, std::byte* to, uint32_t n) {
    Endpoint& ep = endpoint(cookie);
    const QueueLock lock = send_lock(ep);
    if (!ep.active) return false;
    const WorkQueue& q = ep.vi->send;
    if (SegmentValue s; offset == 0 && is_plain(q, q.at(tag), &s) && s.length == n) {
        copy_payload(to, s.bytes(), n);
        return true;
    }
    if (!seek_source(ep, tag, offset)) return false;
    ep.from_valid = gather(ep.from, to, n) == n;
    ep.from_offset = offset + n;
    return ep.from_valid;
}

uint32_t Engine::lend_source(Cookie cookie, uint32_t tag, uint32_t offset, uint32_t n, wire::Piece* pieces) {
    Endpoint& ep = endpoint(cookie);
    const QueueLock lock = send_lock(ep);
    if (!ep.active || !seek_source(ep, tag, offset)) return 0;
    const SegmentCursor before = ep.from;
    ep.from_offset = offset + n;
    for (uint32_t count = 0; count != wire::kMostPieces; ++count) {
        pieces[count].at = ep.from.next(n, &pieces[count].bytes);
        if (pieces[count].at == nullptr) break;
        n -= pieces[count].bytes;
        if (n == 0) return count + 1;
    }
    // It is copied instead, from here.
    ep.from = before;
    ep.from_offset = offset;
    return 0;
}

bool Engine::place_result(Cookie cookie, uint32_t tag, uint32_t offset, const std::byte* from, uint32_t n) {
    Endpoint& ep = endpoint(cookie);
    const QueueLock lock = send_lock(ep);
    if (!ep.active) return false;
    const VIP_DESCRIPTOR* d = ep.vi->send.at(tag);
    if (offset == 0) {
        ep.result.begin(d, d->CS.Length, ep.vi->regions, ep.vi->ptag);
        ep.result_tag = tag;
        ep.result_valid = true;
    }
    if (!ep.result_valid || ep.result_tag != tag) return false;
    ep.result_valid = scatter(ep.result, from, n) == n;
    return ep.result_valid;
}

void Engine::on_finished(Cookie cookie, uint32_t tag, wire::Outcome outcome) {
    Endpoint& ep = endpoint(cookie);
    const QueueLock lock = send_lock(ep);
    WorkQueue& q = ep.vi->send;
    if (!ep.active || q.completed != tag || q.taken == q.completed) return;
    VIP_DESCRIPTOR* d = q.oldest_incomplete();
    const uint32_t operation = sent_status_op(d->CS.Control);
    if (outcome == wire::Outcome::ok) [[likely]] {
        publish_status(d, operation, d->CS.Length);
        tell_completion(q, light_barrier);
        // A malformed descriptor waits until everything before it is finished.
        if (q.completed == q.taken && q.has_untaken() && send_held_ != &ep) {
            ep.doorbells.fetch_or(kDoorbellSend, std::memory_order_acq_rel);
            look_requested_.store(1, std::memory_order_seq_cst);
        }
        return;
    }
    const bool fetches = operation == VIP_STATUS_OP_RDMA_READ || operation == kStatusAtomic;
    uint32_t error = 0;
    switch (outcome) {
        case wire::Outcome::ok:
            break;
        case wire::Outcome::bad_source:
            error = VIP_STATUS_PROTECTION_ERROR;
            break;
        case wire::Outcome::receive_refused:
            // spec/reliability 6.2: Reliable Delivery reports that the connection is broken, Reliable Reception why.
            if (!reception(ep)) return;
            note_peers_cause(ep, q);
            error = VIP_STATUS_REMOTE_DESC_ERROR;
            break;
        case wire::Outcome::not_permitted:
            if (!reception(ep) && !fetches) return;
            note_peers_cause(ep, q);
            error = VIP_STATUS_RDMA_PROT_ERROR;
            break;
        case wire::Outcome::gave_up:
            error = VIP_STATUS_TRANSPORT_ERROR;
            ep.vi->cause_of(q).cause.kind = CauseKind::no_answer;
            break;
    }
    complete_head(q, operation | error, 0);
    ep.refusal = unreported_break();
    if (outcome == wire::Outcome::bad_source) note_found(ep, ep.vi->cause_of(q).cause);
}

// ---- the peer's messages

HostResult Engine::begin_message(Cookie cookie, uint32_t total) {
    Endpoint& ep = endpoint(cookie);
    const QueueLock lock = recv_lock(ep);
    ep.discards = false;
    if (!ep.active) {
        note_stopped(ep);
        return HostResult::bad_receive;
    }
    if (!take_receive(ep)) return no_receive(ep, total);
    WorkQueue& q = ep.vi->recv;
    VIP_DESCRIPTOR* d = q.oldest_incomplete();
    uint64_t capacity = 0;
    uint32_t error = check_receive(*ep.vi, d, total, &capacity);
    if (error == 0 && total > capacity) {
        error = VIP_STATUS_LENGTH_ERROR;
        Cause& cause = ep.vi->cause_of(q).cause;
        cause.kind = CauseKind::receive_too_small;
        cause.operation = CauseOperation::receive;
        cause.length = total;
        cause.high = capacity;
    }
    if (error != 0) {
        complete_head(q, VIP_STATUS_OP_RECEIVE | error, 0);
        ep.refusal = reported_break(VIP_ERROR_CONN_LOST, 0);
        ep.refusal.report = false;
        note_found(ep, ep.vi->cause_of(q).cause);
        return HostResult::bad_receive;
    }
    if (!ep.vi->strict_receives) remember_region(*ep.vi, q, d, total);  // short messages are checked by it, too
    ep.into.begin(d, total, ep.vi->regions, ep.vi->ptag);
    return HostResult::ok;
}

void Engine::place_message(Cookie cookie, uint32_t, const std::byte* from, uint32_t n) {
    Endpoint& ep = endpoint(cookie);
    const QueueLock lock = recv_lock(ep);
    if (!ep.active || ep.discards) return;
    ep.discards = scatter(ep.into, from, n) != n;  // its memory went away
}

void Engine::end_message(Cookie cookie, uint32_t total, const uint32_t* immediate) {
    Endpoint& ep = endpoint(cookie);
    const QueueLock lock = recv_lock(ep);
    WorkQueue& q = ep.vi->recv;
    if (!ep.active || q.taken == q.completed) return;
    uint32_t status = VIP_STATUS_OP_RECEIVE;
    if (ep.discards) {
        complete_head(q, status | VIP_STATUS_PROTECTION_ERROR, 0);
        if (unreliable(ep)) return;
        ep.vi->mark_broken(unreported_break());
        broken_.push_back(ep.vi);
        return;
    }
    if (immediate != nullptr) {
        q.oldest_incomplete()->CS.ImmediateData = *immediate;
        status |= VIP_STATUS_IMMEDIATE;
    }
    complete_head(q, status, total);
}

void Engine::abandon_message(Cookie cookie) {
    Endpoint& ep = endpoint(cookie);
    const QueueLock lock = recv_lock(ep);
    if (ep.active) ep.kept = true;
}

HostResult Engine::whole_message(Cookie cookie, const std::byte* from, uint32_t total,
                                 const uint32_t* immediate) {
    if (take_plain_message(endpoint(cookie), from, total, immediate)) [[likely]]
        return HostResult::ok;
    return wire::Host::whole_message(cookie, from, total, immediate);
}

// False: its receive is not the usual one, or there is none, and nothing has happened.
bool Engine::take_plain_message(Endpoint& ep, const std::byte* from, uint32_t total,
                                const uint32_t* immediate) {
    const QueueLock lock = recv_lock(ep);
    WorkQueue& q = ep.vi->recv;
    if (!ep.active || ep.kept || q.taken != q.completed || !q.has_untaken()) return false;
    VIP_DESCRIPTOR* d = q.next_untaken();
    SegmentValue s;
    if (!is_plain(q, d, &s, total) || total > s.length) return false;
    ++q.taken;
    copy_payload(s.bytes(), from, total);
    uint32_t status = VIP_STATUS_OP_RECEIVE;
    if (immediate != nullptr) {
        d->CS.ImmediateData = *immediate;
        status |= VIP_STATUS_IMMEDIATE;
    }
    publish_status(d, status, total);
    tell_completion(q, light_barrier);
    return true;
}

uint32_t Engine::receives_posted(Cookie cookie) {
    return endpoint(cookie).receives.load(std::memory_order_acquire);
}

}  // namespace viaduct::packet
