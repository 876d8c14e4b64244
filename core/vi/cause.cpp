// SPDX-License-Identifier: BSD-2-Clause
// Looks a second time at what was refused, in the order of the checks, and says which rule it breaks and by what.
#include "core/vi/cause.hpp"

#include "core/vi/vi_core.hpp"

namespace viaduct {

namespace {

Cause make_cause(CauseKind kind, CauseOperation operation, uint64_t length = 0, uint64_t low = 0, uint64_t high = 0) {
    Cause cause;
    cause.kind = kind;
    cause.operation = operation;
    cause.length = length;
    cause.low = low;
    cause.high = high;
    return cause;
}

// The first data segment that may not be touched; *sum is the length of all.
Cause explain_segments(const ViCore& vi, const VIP_DESCRIPTOR* d, uint32_t first, uint32_t count,
                       CauseOperation operation, uint64_t* sum) {
    Cause found;
    *sum = 0;
    for (uint32_t i = first; i < count; ++i) {
        const SegmentValue s = read_segment(segments_of(d)[i].Local);
        *sum += s.length;
        if (found || s.length == 0) continue;
        found = explain_range(*vi.regions, s.handle, s.address, s.length, vi.ptag, 0);
        found.operation = operation;
        found.segment = static_cast<uint16_t>(i + 1);
    }
    return found;
}

Cause explain_atomic(const ViCore& vi, const VIP_DESCRIPTOR* d, uint32_t count) {
    constexpr CauseOperation kAtomic = CauseOperation::atomic;
    if (vi.atomic_widths == 0) return make_cause(CauseKind::no_atomics, kAtomic);
    if (count != 2) return make_cause(CauseKind::atomic_segments, kAtomic, 0, count);
    uint64_t sum = 0;
    if (const Cause segment = explain_segments(vi, d, 1, 2, kAtomic, &sum)) return segment;
    const uint32_t width = atomic_width(d->CS.Control, sum);
    if (sum != d->CS.Length) return make_cause(CauseKind::length_sum, kAtomic, d->CS.Length, 0, sum);
    if ((width & vi.atomic_widths) == 0) return make_cause(CauseKind::atomic_width, kAtomic, sum, 0, vi.atomic_widths);
    Cause word = make_cause(CauseKind::atomic_alignment, kAtomic, 0, 0, width);
    word.address = segments_of(d)->Remote.Data.AddressBits;
    return word.address % width != 0 ? word : Cause();
}

}  // namespace

CauseOperation operation_of_send(const VIP_DESCRIPTOR* d) {
    if (is_atomic(d->CS.Control)) return CauseOperation::atomic;
    switch (operation_of(d)) {
        case VIP_CONTROL_OP_RDMAWRITE:
            return CauseOperation::rdma_write;
        case VIP_CONTROL_OP_RDMAREAD:
            return CauseOperation::rdma_read;
        default:
            return CauseOperation::send;
    }
}

// A range is outside of a region only where the region is open: a finding of that kind (providers/packet/finding.cpp)
// does not let a peer search for the ends of other regions.
Cause explain_range(const RegionView& regions, uint32_t handle, uint64_t address, uint64_t length, uint32_t ptag,
                    uint32_t flags) {
    Cause cause;
    cause.handle = handle;
    cause.address = address;
    cause.length = length;
    Region region;
    if (!regions.snapshot(handle, &region)) {
        cause.kind = CauseKind::unknown_handle;
    } else if (!ptags_agree(region.ptag, ptag)) {
        cause.kind = CauseKind::other_ptag;
        cause.low = region.ptag;
        cause.high = ptag;
    } else if ((region.flags & flags) != flags) {
        cause.kind = CauseKind::memory_not_enabled;
    } else if (length > region.length || address - region.base > region.length - length) {
        cause.kind = CauseKind::outside_region;
        cause.low = region.base;
        cause.high = region.base + region.length;
    } else {
        return {};
    }
    return cause;
}

Cause explain_send(const ViCore& vi, const VIP_DESCRIPTOR* d) {
    const uint32_t control = d->CS.Control;
    const uint32_t count = read_segment_count(d);
    const CauseOperation operation = operation_of_send(d);
    if (operation == CauseOperation::atomic) return explain_atomic(vi, d, count);
    if ((control & VIP_CONTROL_RESERVED) != 0 || operation_of(d) == VIP_CONTROL_OP_RESERVED)
        return make_cause(CauseKind::control, operation, 0, control);
    const uint32_t first = operation == CauseOperation::send ? 0 : 1;
    if (count < first) return make_cause(CauseKind::no_address_segment, operation);
    if (operation == CauseOperation::rdma_read) {
        if (vi.rdma_read_allowed == 0) return make_cause(CauseKind::no_rdma_read, operation);
        if ((control & VIP_CONTROL_IMMEDIATE) != 0) return make_cause(CauseKind::read_with_immediate, operation);
    }
    if (count > vi.max_segments) return make_cause(CauseKind::segment_count, operation, 0, count, vi.max_segments);
    if (!lies_in_registered_memory(d, count, *vi.regions, vi.ptag))
        return make_cause(CauseKind::descriptor_past_region, operation);
    uint64_t sum = 0;
    const Cause segment = explain_segments(vi, d, first, count, operation, &sum);
    if (sum != d->CS.Length) return make_cause(CauseKind::length_sum, operation, d->CS.Length, 0, sum);
    if (sum > vi.max_transfer) return make_cause(CauseKind::transfer_size, operation, sum, 0, vi.max_transfer);
    return segment;
}

Cause explain_receive(const ViCore& vi, const VIP_DESCRIPTOR* d) {
    constexpr CauseOperation kReceive = CauseOperation::receive;
    const uint32_t count = read_segment_count(d);
    if ((d->CS.Control & ~uint32_t{VIP_CONTROL_IMMEDIATE}) != VIP_CONTROL_OP_SENDRECV)
        return make_cause(CauseKind::control, kReceive, 0, d->CS.Control);
    if (count > vi.max_segments) return make_cause(CauseKind::segment_count, kReceive, 0, count, vi.max_segments);
    if (!lies_in_registered_memory(d, count, *vi.regions, vi.ptag))
        return make_cause(CauseKind::descriptor_past_region, kReceive);
    uint64_t sum = 0;
    return explain_segments(vi, d, 0, count, kReceive, &sum);
}

}  // namespace viaduct
