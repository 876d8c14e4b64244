// SPDX-License-Identifier: BSD-2-Clause
#include "providers/paramnet/told_cause.hpp"

#include <cstring>

#include "providers/paramnet/nic.hpp"

namespace viaduct::paramnet {

namespace {

uint32_t wanted_flags(CauseOperation operation) {
    switch (operation) {
        case CauseOperation::rdma_read:
            return kRegionRdmaRead;
        case CauseOperation::atomic:
            return kRegionRdmaRead | kRegionRdmaWrite;
        default:
            return kRegionRdmaWrite;
    }
}

CauseOperation operation_that_wants(uint32_t flags) {
    if (flags == kRegionRdmaRead) return CauseOperation::rdma_read;
    return flags == kRegionRdmaWrite ? CauseOperation::rdma_write : CauseOperation::atomic;
}

uint32_t permissions_for(uint32_t flags) {
    return ((flags & kRegionRdmaWrite) != 0 ? kMayWrite : 0u) | ((flags & kRegionRdmaRead) != 0 ? kMayRead : 0u);
}

// `granted`: Permission bits of the VI whose memory it is.
Cause explain(const RegionView& regions, uint32_t granted, uint32_t ptag, Cause range, uint32_t flags) {
    const uint32_t wanted = permissions_for(flags);
    if ((granted & wanted) != wanted) {
        range.kind = CauseKind::vi_not_enabled;
        return range;
    }
    Cause found = explain_range(regions, range.handle, range.address, range.length, ptag, flags);
    if (!found) {
        found = range;
        found.kind = CauseKind::changed_or_unmapped;
    }
    found.operation = range.operation;
    return found;
}

}  // namespace

void tell_cause(Endpoint& ep, const Cause& cause) {
    std::atomic<uint64_t>(&words)[kCauseWords] = ep.tx.own->cause;
    if (!cause || words[0].load(std::memory_order_relaxed) != 0) return;
    uint64_t values[kCauseWords];
    std::memcpy(values, &cause, sizeof values);
    for (uint32_t i = kCauseWords; i-- != 0;) words[i].store(values[i], std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);  // what tells of it is stored next
}

Cause cause_told(const Endpoint& ep) {
    uint64_t values[kCauseWords];
    for (uint32_t i = 0; i < kCauseWords; ++i) values[i] = ep.rx.peer->cause[i].load(std::memory_order_relaxed);
    Cause cause;
    static_assert(sizeof values == sizeof cause);
    // A kind or an operation that is none of ours is left out before it becomes a value of its type.
    const auto kind = static_cast<uint8_t>(values[0]);
    const auto operation = static_cast<uint8_t>(values[0] >> 8);
    if (kind >= static_cast<uint8_t>(CauseKind::count_)) return {};
    cause.kind = static_cast<CauseKind>(kind);
    cause.operation = operation < static_cast<uint8_t>(CauseOperation::none) ? static_cast<CauseOperation>(operation)
                                                                             : CauseOperation::none;
    cause.segment = static_cast<uint16_t>(values[0] >> 16);
    cause.handle = static_cast<uint32_t>(values[0] >> 32);
    cause.address = values[1];
    cause.length = values[2];
    cause.low = values[3];
    cause.high = values[4];
    return cause;
}

void tell_own_cause(Endpoint& ep) {
    const ViCore& vi = *ep.vi;
    for (const ViCore::Known& known : vi.causes)
        if (!known.told_by_peer) tell_cause(ep, known.cause);
    if (vi.is_marked_broken() && !vi.reason.told_by_peer) tell_cause(ep, vi.reason.cause);
}

Cause explain_target(const Endpoint& ep, const VIP_DESCRIPTOR* d, uint64_t length) {
    const EndRecord& peer = *ep.tx.peer;
    const VIP_ADDRESS_SEGMENT& remote = segments_of(d)->Remote;
    Cause range;
    range.operation = operation_of_send(d);
    range.handle = remote.Handle;
    range.address = remote.Data.AddressBits;
    range.length = length;
    return explain(ep.joint.peer->regions, peer.permission.load(std::memory_order_relaxed),
                   peer.ptag.load(std::memory_order_relaxed), range, wanted_flags(range.operation));
}

Cause explain_own_target(const Endpoint& ep, uint32_t handle, uint64_t address, uint64_t length, uint32_t flags) {
    const ViTraits& traits = ep.vi->traits;
    Cause range;
    range.operation = operation_that_wants(flags);
    range.handle = handle;
    range.address = address;
    range.length = length;
    const uint32_t granted = (traits.rdma_write != 0 ? kMayWrite : 0u) | (traits.rdma_read != 0 ? kMayRead : 0u);
    return explain(*ep.nic->regions, granted, ep.vi->ptag, range, flags);
}

}  // namespace viaduct::paramnet
