// SPDX-License-Identifier: BSD-2-Clause
// Checks of descriptors when a provider takes them, and the flushing of queues. Called by providers and the
// user agent with the queue's lock held.
#include <algorithm>
#include <new>

#include "core/vi/vi_core.hpp"

namespace viaduct {

namespace {

inline bool may_touch(const ViCore& vi, const VIP_DATA_SEGMENT& s, uint64_t length) {
    return length == 0 || vi.regions->check(s.Handle, s.Data.AddressBits, length, vi.ptag) == RegionCheck::ok;
}

// Sum of the lengths of `count` data segments; adds a protection error for each that may not be touched
// (spec/descriptors 2.3). A segment of length 0 is legal and nothing else of it is looked at
// (spec/descriptors 2.2 rule 4).
inline uint64_t sum_segments(const ViCore& vi, const VIP_DESCRIPTOR_SEGMENT* segments, uint32_t count,
                             uint32_t* error) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < count; ++i) {
        const VIP_DATA_SEGMENT& s = segments[i].Local;
        const uint64_t length = s.Length;
        total += length;
        if (!may_touch(vi, s, length)) [[unlikely]]
            *error |= VIP_STATUS_PROTECTION_ERROR;
    }
    return total;
}

// The same of the first `bytes` only.
uint64_t sum_used_segments(const ViCore& vi, const VIP_DESCRIPTOR_SEGMENT* segments, uint32_t count, uint64_t bytes,
                           uint32_t* error) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < count; ++i) {
        const VIP_DATA_SEGMENT& s = segments[i].Local;
        const uint64_t length = s.Length;
        if (total < bytes && !may_touch(vi, s, std::min(length, bytes - total))) *error |= VIP_STATUS_PROTECTION_ERROR;
        total += length;
    }
    return total;
}

// What a control word other than that of a plain send gets wrong.
uint32_t check_rdma_form(const ViCore& vi, uint32_t control, uint32_t segments) {
    const uint32_t operation = control & VIP_CONTROL_OP_MASK;
    // spec/descriptors 2.2: reserved bits are zero; spec/descriptors 2.1: operation 3 is reserved.
    if ((control & VIP_CONTROL_RESERVED) != 0 || operation == VIP_CONTROL_OP_RESERVED)
        return VIP_STATUS_FORMAT_ERROR;
    if (operation == VIP_CONTROL_OP_SENDRECV) return 0;
    // spec/descriptors 2.2 rule 3: exactly one address segment, first; SegCount counts it.
    if (segments == 0) return VIP_STATUS_FORMAT_ERROR;
    if (operation == VIP_CONTROL_OP_RDMAREAD) {
        // spec/descriptors 2.3: read where NIC, level or VI does not have it; spec/conformance O5: a read
        // carries no immediate data.
        if (vi.rdma_read_allowed == 0 || (control & VIP_CONTROL_IMMEDIATE) != 0)
            return VIP_STATUS_FORMAT_ERROR;
    }
    return 0;
}

// An atomic operation of viaduct/ext.h: the address of a word, and operands for it in one piece.
uint32_t check_atomic(const ViCore& vi, const VIP_DESCRIPTOR* d, uint32_t count, uint64_t* total) {
    if (vi.atomic_widths == 0 || count != 2) return VIP_STATUS_FORMAT_ERROR;
    uint32_t error = 0;
    *total = sum_segments(vi, segments_of(d) + 1, 1, &error);
    const uint32_t width = atomic_width(d->CS.Control, *total);
    if (*total != d->CS.Length || *total > vi.max_transfer || (width & vi.atomic_widths) == 0)
        return error | VIP_STATUS_LENGTH_ERROR;
    if (segments_of(d)->Remote.Data.AddressBits % width != 0) error |= VIP_STATUS_FORMAT_ERROR;
    return error;
}

}  // namespace

bool WorkQueue::allocate(uint32_t depth_power_of_two) {
    if (depth_power_of_two == 0 || (depth_power_of_two & (depth_power_of_two - 1)) != 0) return false;
    if (!slots || mask + 1 != depth_power_of_two) {
        // Not initialised: pages of a deep queue that is never filled are never touched.
        slots.reset(new (std::nothrow) uintptr_t[depth_power_of_two]);
        if (!slots) return false;
        mask = depth_power_of_two - 1;
    }
    clear();
    return true;
}

void note_failure(WorkQueue& q, const VIP_DESCRIPTOR* d, uint32_t status) {
    q.vi->stats.count(ViCount::errors);
    const ViEvents* events = q.vi->events;
    if (events != nullptr && events->failed != nullptr) events->failed(q, d, status);
}

uint32_t check_send(const ViCore& vi, const VIP_DESCRIPTOR* d, uint64_t* total) {
    const uint32_t control = d->CS.Control;
    const uint32_t count = read_segment_count(d);
    const VIP_DESCRIPTOR_SEGMENT* segments = segments_of(d);
    uint32_t data_segments = count;
    // Immediate data and a fence are legal with every send (spec/descriptors 2.2, 2.5).
    if ((control & ~uint32_t{VIP_CONTROL_IMMEDIATE | VIP_CONTROL_QFENCE}) != VIP_CONTROL_OP_SENDRECV)
        [[unlikely]] {
        if (is_atomic(control)) return check_atomic(vi, d, count, total);
        if (const uint32_t wrong = check_rdma_form(vi, control, count); wrong != 0) return wrong;
        ++segments;
        --data_segments;
    }
    if (count > vi.max_segments || !lies_in_registered_memory(d, count, *vi.regions, vi.ptag)) [[unlikely]]
        return VIP_STATUS_FORMAT_ERROR;  // spec/descriptors 2.2 rule 6: address segment included

    uint32_t error = 0;
    const uint64_t sum = sum_segments(vi, segments, data_segments, &error);
    // spec/descriptors 2.3: Length is the sum of the data segments, and no more than the VI's MaxTransferSize.
    if (sum != d->CS.Length || sum > vi.max_transfer) [[unlikely]]
        error |= VIP_STATUS_LENGTH_ERROR;
    *total = sum;
    return error;
}

namespace {

// spec/descriptors 2.2 rule 1: the receive queue has one operation. Rule 2 and spec/compat T3: IMMEDIATE is
// tolerated. spec/descriptors 2.3: a fence has no place here. Length is not looked at: programs store what
// they like in it.
inline bool has_form_of_receive(const ViCore& vi, const VIP_DESCRIPTOR* d, uint32_t count) {
    return (d->CS.Control & ~uint32_t{VIP_CONTROL_IMMEDIATE}) == VIP_CONTROL_OP_SENDRECV &&
           count <= vi.max_segments && lies_in_registered_memory(d, count, *vi.regions, vi.ptag);
}

}  // namespace

uint32_t check_receive(const ViCore& vi, const VIP_DESCRIPTOR* d, uint64_t* capacity) {
    const uint32_t count = read_segment_count(d);
    if (!has_form_of_receive(vi, d, count)) [[unlikely]]
        return VIP_STATUS_FORMAT_ERROR;
    uint32_t error = 0;
    *capacity = sum_segments(vi, segments_of(d), count, &error);
    return error;
}

uint32_t check_receive(const ViCore& vi, const VIP_DESCRIPTOR* d, uint64_t bytes, uint64_t* capacity) {
    if (vi.strict_receives) return check_receive(vi, d, capacity);
    const uint32_t count = read_segment_count(d);
    if (!has_form_of_receive(vi, d, count)) [[unlikely]]
        return VIP_STATUS_FORMAT_ERROR;
    uint32_t error = 0;
    *capacity = sum_used_segments(vi, segments_of(d), count, bytes, &error);
    return error;
}

void flush_queue(WorkQueue& q) {
    q.taken = q.posted;
    if (q.completed != q.posted) q.vi->stats.count(ViCount::flushed, q.posted - q.completed);
    while (q.completed != q.posted) {
        // spec/states 3 rules 1 and 2: posting order, and each a completion like any other, CQ entry included.
        const uint32_t operation =
            q.is_receive ? VIP_STATUS_OP_RECEIVE : sent_status_op(q.oldest_incomplete()->CS.Control);
        complete_head(q, operation | VIP_STATUS_DESC_FLUSHED_ERROR, 0);
    }
}

}  // namespace viaduct
