// SPDX-License-Identifier: BSD-2-Clause
// What a descriptor asks the wire to do.
#include <cstring>

#include "core/copy/copy.hpp"
#include "providers/packet/engine.hpp"

namespace viaduct::packet {

namespace {

wire::Operation operation_on_the_wire(uint32_t control) {
    if (is_atomic(control))
        return is_compare_swap(control) ? wire::Operation::compare_swap : wire::Operation::fetch_add;
    switch (control & VIP_CONTROL_OP_MASK) {
        case VIP_CONTROL_OP_RDMAWRITE:
            return wire::Operation::write;
        case VIP_CONTROL_OP_RDMAREAD:
            return wire::Operation::read;
        default:
            return wire::Operation::send;
    }
}

// The operands of an atomic operation travel with its request: the first one, then what is expected.
uint32_t take_operands(const ViCore& vi, const VIP_DESCRIPTOR* d, uint32_t control, uint32_t total,
                       wire::Work* w) {
    std::byte operands[16] = {};
    const uint32_t width = atomic_width(control, total);
    if (width == 0) return VIP_STATUS_LENGTH_ERROR;
    SegmentCursor from;
    from.begin(d, total, vi.regions, vi.ptag);
    if (gather(from, operands, total) != total) return VIP_STATUS_PROTECTION_ERROR;
    const auto word = [&](uint32_t index) {
        uint32_t narrow = 0;
        uint64_t wide = 0;
        if (width == 8) {
            std::memcpy(&wide, operands + 8 * index, sizeof wide);
            return wide;
        }
        std::memcpy(&narrow, operands + 4 * index, sizeof narrow);
        return uint64_t{narrow};
    };
    w->width = static_cast<uint8_t>(width);
    w->total = width;
    w->operand = word(0);
    if (is_compare_swap(control)) w->compare = word(1);
    return 0;
}

}  // namespace

uint32_t describe_work(const ViCore& vi, const VIP_DESCRIPTOR* d, uint32_t total, wire::Work* w) {
    const uint32_t control = d->CS.Control;
    w->operation = operation_on_the_wire(control);
    w->total = total;
    w->has_immediate = (control & VIP_CONTROL_IMMEDIATE) != 0;
    w->immediate = d->CS.ImmediateData;
    w->fence = (control & VIP_CONTROL_QFENCE) != 0;
    if (w->operation != wire::Operation::send) {
        w->handle = d->DS[0].Remote.Handle;
        w->address = d->DS[0].Remote.Data.AddressBits;
    }
    return is_atomic(control) ? take_operands(vi, d, control, total, w) : 0;
}

}  // namespace viaduct::packet
