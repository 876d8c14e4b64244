// SPDX-License-Identifier: BSD-2-Clause
// What the peer asks of our memory: RDMA writes, reads and atomics, done on registered memory that permits them. As in
// host.cpp, the engine's lock is held.
#include <cstring>

#include "core/copy/copy.hpp"
#include "providers/packet/host_parts.hpp"

namespace viaduct::packet {

namespace {

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

// spec/reliability 6.2 "RDMA write refused at target". With immediate data the receive that it has taken gets
// the error (spec/reliability 7). R held.
HostResult refuse_write(Endpoint& ep, const uint32_t* immediate, const Cause& cause) {
    note_found(ep, cause);
    if (immediate != nullptr) {
        WorkQueue& q = ep.vi->recv;
        ep.refusal = unreported_break();
        ep.vi->cause_of(q).cause = cause;
        if (q.taken == q.completed) return HostResult::not_permitted;
        q.oldest_incomplete()->CS.ImmediateData = *immediate;
        complete_head(q, VIP_STATUS_OP_REMOTE_RDMA_WRITE | VIP_STATUS_IMMEDIATE | VIP_STATUS_RDMA_PROT_ERROR,
                      0);
    } else if (unreliable(ep)) {
        ep.vi->events->async_error(*ep.vi, VIP_ERROR_RDMAW_PROT, VIP_RESOURCE_VI,
                                   VIP_STATUS_OP_REMOTE_RDMA_WRITE, nullptr);
    } else {
        ep.refusal = reported_break(VIP_ERROR_RDMAW_PROT, VIP_STATUS_OP_REMOTE_RDMA_WRITE);
        ep.refusal.cause = cause;
    }
    return HostResult::not_permitted;
}

}  // namespace

HostResult Engine::begin_write(Cookie cookie, uint32_t handle, uint64_t address, uint32_t total,
                               const uint32_t* immediate) {
    Endpoint& ep = endpoint(cookie);
    const QueueLock lock = recv_lock(ep);
    if (!ep.active) {
        note_stopped(ep);
        return HostResult::not_permitted;
    }
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
    if (!ep.active) {
        note_stopped(ep);
        return HostResult::not_permitted;
    }
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

void Engine::on_damaged_write(Cookie cookie) {
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
    ep.refusal = reported_break(VIP_ERROR_RDMAR_PROT, VIP_STATUS_OP_RDMA_READ);
    if (ep.active) ep.refusal.cause = explain(ep, handle, address, total, kRegionRdmaRead, CauseOperation::rdma_read);
    ep.active ? note_found(ep, ep.refusal.cause) : note_stopped(ep);
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
        ep.refusal = reported_break(VIP_ERROR_RDMAR_PROT, VIP_STATUS_OP_RDMA_READ);  // as of a read (viaduct/ext.h)
        const uint32_t lacks =
            permitted(ep, w.handle, w.address, w.width, kRegionRdmaWrite) ? kRegionRdmaRead : kRegionRdmaWrite;
        if (ep.active) ep.refusal.cause = explain(ep, w.handle, w.address, w.width, lacks, CauseOperation::atomic);
        ep.active ? note_found(ep, ep.refusal.cause) : note_stopped(ep);
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

}  // namespace viaduct::packet
