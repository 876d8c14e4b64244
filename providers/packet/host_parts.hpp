// SPDX-License-Identifier: BSD-2-Clause
// What host.cpp and host_rdma.cpp share: the locks of a VI's queues, the next receive, reasons of a break.
#pragma once

#include "providers/packet/nic.hpp"

namespace viaduct::packet {

using wire::Cookie;
using wire::HostResult;

inline Endpoint& endpoint(Cookie cookie) { return *static_cast<Endpoint*>(cookie); }

inline bool unreliable(const Endpoint& ep) { return ep.vi->traits.reliability == VIP_SERVICE_UNRELIABLE; }
inline bool reception(const Endpoint& ep) { return ep.vi->traits.reliability == VIP_SERVICE_RELIABLE_RECEPTION; }

// The error is told by a descriptor: no asynchronous one.
inline BreakReason unreported_break() {
    BreakReason why;
    why.report = false;
    return why;
}

inline BreakReason reported_break(VIP_ERROR_CODE code, VIP_ULONG opcode) {
    BreakReason why;
    why.code = code;
    why.opcode = opcode;
    return why;
}

// Takes the next receive; false: there is none. R held.
inline bool take_receive(Endpoint& ep) {
    WorkQueue& q = ep.vi->recv;
    if (ep.kept) {
        ep.kept = false;
        return true;
    }
    if (!q.has_untaken()) return false;
    ++q.taken;
    return true;
}

// The disconnect of the connection carries the first cause. An Unreliable connection goes on.
inline void note_found(Endpoint& ep, const Cause& cause) {
    if (!unreliable(ep) && !ep.found) ep.found = cause;
}

// stop() has ended the connection here, and this thread sees its doorbell or its `active`.
inline void note_stopped(Endpoint& ep) {
    if (!ep.found) ep.found = ep.found_at_stop;
}

// spec/reliability 6.2 "no receive descriptor posted", seen from the receiver.
inline HostResult no_receive(Endpoint& ep, uint32_t total) {
    if (unreliable(ep)) {
        ep.vi->events->async_error(*ep.vi, VIP_ERROR_RECVQ_EMPTY, VIP_RESOURCE_VI, VIP_STATUS_OP_RECEIVE,
                                   nullptr);
    } else {
        ep.refusal = reported_break(VIP_ERROR_RECVQ_EMPTY, VIP_STATUS_OP_RECEIVE);
        ep.refusal.cause.kind = CauseKind::no_receive;
        ep.refusal.cause.length = total;
        ep.refusal.cause.high = ep.vi->recv.posted;
        note_found(ep, ep.refusal.cause);
    }
    return HostResult::no_receive;
}

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

}  // namespace viaduct::packet
