// SPDX-License-Identifier: BSD-2-Clause
// What the wire protocol asks of us, done on the VI's queues and registered memory. The engine's lock is
// held; each call takes the queue's lock it needs, unless this thread came with it.
#include <cstring>

#include "core/copy/copy.hpp"
#include "providers/packet/nic.hpp"
#include "providers/packet/plain_descriptor.hpp"

namespace viaduct::packet {

using wire::Cookie;
using wire::HostResult;

namespace {

Endpoint& endpoint(Cookie cookie) { return *static_cast<Endpoint*>(cookie); }

bool unreliable(const Endpoint& ep) { return ep.vi->traits.reliability == VIP_SERVICE_UNRELIABLE; }
bool reception(const Endpoint& ep) { return ep.vi->traits.reliability == VIP_SERVICE_RELIABLE_RECEPTION; }

// The error is told by a descriptor: no asynchronous one.
BreakReason quietly() {
    BreakReason why;
    why.report = false;
    return why;
}

BreakReason aloud(VIP_ERROR_CODE code, VIP_ULONG opcode) {
    BreakReason why;
    why.code = code;
    why.opcode = opcode;
    return why;
}

// Is that range open to the peer? spec/reliability 7: VI, memory, tag, range.
bool permitted(const Endpoint& ep, uint32_t handle, uint64_t address, uint64_t length, uint32_t flag) {
    const bool writes = flag == kRegionRdmaWrite;
    if ((writes ? ep.vi->traits.rdma_write : ep.vi->traits.rdma_read) == 0) return false;
    if (length == 0) return true;
    Region region;
    return ep.nic->regions->snapshot(handle, &region) && (region.flags & flag) != 0 &&
           ptags_agree(region.ptag, ep.vi->ptag) && length <= region.length &&
           address - region.base <= region.length - length;
}

// Why not.
Cause explain(const Endpoint& ep, uint32_t handle, uint64_t address, uint64_t length, uint32_t flag,
              CauseOperation operation) {
    const bool writes = flag == kRegionRdmaWrite;
    Cause cause = explain_range(*ep.nic->regions, handle, address, length, ep.vi->ptag, flag);
    if ((writes ? ep.vi->traits.rdma_write : ep.vi->traits.rdma_read) == 0) {
        cause = Cause();
        cause.kind = CauseKind::vi_not_enabled;
        cause.handle = handle;
        cause.address = address;
        cause.length = length;
    }
    cause.operation = operation;
    return cause;
}

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

// Takes the next receive; false: there is none. R held.
bool take_receive(Endpoint& ep) {
    WorkQueue& q = ep.vi->recv;
    if (ep.kept) {
        ep.kept = false;
        return true;
    }
    if (!q.has_untaken()) return false;
    ++q.taken;
    return true;
}

// spec/reliability 6.2 "no receive descriptor posted", seen from the receiver.
HostResult no_receive(Endpoint& ep, uint32_t total) {
    if (unreliable(ep)) {
        ep.vi->events->async_error(*ep.vi, VIP_ERROR_RECVQ_EMPTY, VIP_RESOURCE_VI, VIP_STATUS_OP_RECEIVE,
                                   nullptr);
    } else {
        ep.refusal = aloud(VIP_ERROR_RECVQ_EMPTY, VIP_STATUS_OP_RECEIVE);
        ep.refusal.cause.kind = CauseKind::no_receive;
        ep.refusal.cause.length = total;
        ep.refusal.cause.high = ep.vi->recv.posted;
    }
    return HostResult::no_receive;
}

// spec/reliability 6.2 "RDMA write refused at target". With immediate data the receive that it has taken gets
// the error (spec/reliability 7). R held.
HostResult refuse_write(Endpoint& ep, const uint32_t* immediate, const Cause& cause) {
    if (immediate != nullptr) {
        WorkQueue& q = ep.vi->recv;
        ep.refusal = quietly();
        ep.vi->cause_of(q).cause = cause;
        if (q.taken == q.completed) return HostResult::not_permitted;
        q.oldest_incomplete()->CS.ImmediateData = *immediate;
        complete_head(q, VIP_STATUS_OP_REMOTE_RDMA_WRITE | VIP_STATUS_IMMEDIATE | VIP_STATUS_RDMA_PROT_ERROR,
                      0);
    } else if (unreliable(ep)) {
        ep.vi->events->async_error(*ep.vi, VIP_ERROR_RDMAW_PROT, VIP_RESOURCE_VI,
                                   VIP_STATUS_OP_REMOTE_RDMA_WRITE, nullptr);
    } else {
        ep.refusal = aloud(VIP_ERROR_RDMAW_PROT, VIP_STATUS_OP_REMOTE_RDMA_WRITE);
        ep.refusal.cause = cause;
    }
    return HostResult::not_permitted;
}

}  // namespace

// A queue's lock, unless this thread has had it since before it got the engine.
class Engine::QueueLock {
public:
    QueueLock(BiasedLock& lock, bool held) : lock_(held ? nullptr : &lock) {
        if (held) return;
        as_owner_ = lock.try_enter();
        if (!as_owner_) [[unlikely]]
            lock.lock();
    }
    ~QueueLock() {
        if (lock_ == nullptr) return;
        as_owner_ ? lock_->leave() : lock_->unlock();
    }
    QueueLock(const QueueLock&) = delete;
    QueueLock& operator=(const QueueLock&) = delete;

private:
    BiasedLock* lock_;
    bool as_owner_ = false;
};

inline Engine::QueueLock Engine::send_lock(Endpoint& ep) { return {ep.vi->send.lock, send_held_ == &ep}; }
inline Engine::QueueLock Engine::recv_lock(Endpoint& ep) { return {ep.vi->recv.lock, recv_held_ == &ep}; }

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

void Engine::finished(Cookie cookie, uint32_t tag, wire::Outcome outcome) {
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
            ep.bells.fetch_or(kBellSend, std::memory_order_acq_rel);
            any_bell_.store(1, std::memory_order_seq_cst);
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
            error = VIP_STATUS_REMOTE_DESC_ERROR;
            break;
        case wire::Outcome::not_permitted:
            if (!reception(ep) && !fetches) return;
            error = VIP_STATUS_RDMA_PROT_ERROR;
            break;
        case wire::Outcome::gave_up:
            error = VIP_STATUS_TRANSPORT_ERROR;
            ep.vi->cause_of(q).cause.kind = CauseKind::no_answer;
            break;
    }
    complete_head(q, operation | error, 0);
    ep.refusal = quietly();
}

// ---- the peer's messages

HostResult Engine::begin_message(Cookie cookie, uint32_t total) {
    Endpoint& ep = endpoint(cookie);
    const QueueLock lock = recv_lock(ep);
    ep.discards = false;
    if (!ep.active) return HostResult::bad_receive;
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
        ep.refusal = aloud(VIP_ERROR_CONN_LOST, 0);
        ep.refusal.report = false;
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
        ep.vi->mark_broken(quietly());
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

// ---- the peer's RDMA writes

HostResult Engine::begin_write(Cookie cookie, uint32_t handle, uint64_t address, uint32_t total,
                               const uint32_t* immediate) {
    Endpoint& ep = endpoint(cookie);
    const QueueLock lock = recv_lock(ep);
    if (!ep.active) return HostResult::not_permitted;
    if (immediate != nullptr && !take_receive(ep)) return no_receive(ep, total);
    return permitted(ep, handle, address, total, kRegionRdmaWrite)
               ? HostResult::ok
               : refuse_write(ep, immediate,
                              explain(ep, handle, address, total, kRegionRdmaWrite, CauseOperation::rdma_write));
}

HostResult Engine::place_write(Cookie cookie, uint32_t handle, uint64_t address, const std::byte* from,
                               uint32_t n, const uint32_t* immediate) {
    Endpoint& ep = endpoint(cookie);
    const QueueLock lock = recv_lock(ep);
    if (!ep.active) return HostResult::not_permitted;
    // It may have ended meanwhile.
    if (!permitted(ep, handle, address, n, kRegionRdmaWrite)) {
        return refuse_write(ep, immediate,
                            explain(ep, handle, address, n, kRegionRdmaWrite, CauseOperation::rdma_write));
    }
    copy_rising(reinterpret_cast<std::byte*>(address), from, n);
    return HostResult::ok;
}

void Engine::end_write(Cookie cookie, uint32_t total, const uint32_t* immediate) {
    if (immediate == nullptr) return;
    Endpoint& ep = endpoint(cookie);
    const QueueLock lock = recv_lock(ep);
    WorkQueue& q = ep.vi->recv;
    if (!ep.active || q.taken == q.completed) return;
    q.oldest_incomplete()->CS.ImmediateData = *immediate;
    complete_head(q, VIP_STATUS_OP_REMOTE_RDMA_WRITE | VIP_STATUS_IMMEDIATE, total);
}

void Engine::abandon_write(Cookie cookie, const uint32_t* immediate) {
    if (immediate != nullptr) abandon_message(cookie);
}

void Engine::damaged_write(Cookie cookie) {
    Endpoint& ep = endpoint(cookie);
    const QueueLock lock = recv_lock(ep);
    if (!ep.active) return;
    ep.vi->events->async_error(*ep.vi, VIP_ERROR_RDMAW_DATA, VIP_RESOURCE_VI, VIP_STATUS_OP_REMOTE_RDMA_WRITE,
                               nullptr);
}

// ---- the peer's reads and atomics

HostResult Engine::begin_read(Cookie cookie, uint32_t handle, uint64_t address, uint32_t total) {
    Endpoint& ep = endpoint(cookie);
    const QueueLock lock = recv_lock(ep);
    if (ep.active && permitted(ep, handle, address, total, kRegionRdmaRead)) return HostResult::ok;
    ep.refusal = aloud(VIP_ERROR_RDMAR_PROT, VIP_STATUS_OP_RDMA_READ);
    if (ep.active) ep.refusal.cause = explain(ep, handle, address, total, kRegionRdmaRead, CauseOperation::rdma_read);
    return HostResult::not_permitted;
}

HostResult Engine::read_memory(Cookie cookie, uint32_t handle, uint64_t address, std::byte* to, uint32_t n) {
    const HostResult result = begin_read(cookie, handle, address, n);
    if (result == HostResult::ok) std::memcpy(to, reinterpret_cast<const void*>(address), n);
    return result;
}

HostResult Engine::atomic(Cookie cookie, const wire::Work& w, uint64_t* old) {
    Endpoint& ep = endpoint(cookie);
    const QueueLock lock = recv_lock(ep);
    if (!ep.active || w.address % w.width != 0 ||
        !permitted(ep, w.handle, w.address, w.width, kRegionRdmaWrite) ||
        !permitted(ep, w.handle, w.address, w.width, kRegionRdmaRead)) {
        ep.refusal = aloud(VIP_ERROR_RDMAR_PROT, VIP_STATUS_OP_RDMA_READ);  // as of a read (viaduct/ext.h)
        const uint32_t lacks =
            permitted(ep, w.handle, w.address, w.width, kRegionRdmaWrite) ? kRegionRdmaRead : kRegionRdmaWrite;
        if (ep.active) ep.refusal.cause = explain(ep, w.handle, w.address, w.width, lacks, CauseOperation::atomic);
        return HostResult::not_permitted;
    }
    const auto apply = [&](auto reference, auto operand, auto compare) {
        if (w.operation == wire::Operation::fetch_add) {
            *old = reference.fetch_add(operand);
        } else {
            reference.compare_exchange_strong(compare, operand);
            *old = compare;
        }
    };
    if (w.width == 4) {
        apply(std::atomic_ref(*reinterpret_cast<uint32_t*>(w.address)), static_cast<uint32_t>(w.operand),
              static_cast<uint32_t>(w.compare));
    } else {
        apply(std::atomic_ref(*reinterpret_cast<uint64_t*>(w.address)), w.operand, w.compare);
    }
    return HostResult::ok;
}

uint32_t Engine::receives_posted(Cookie cookie) {
    return endpoint(cookie).receives.load(std::memory_order_acquire);
}

}  // namespace viaduct::packet
