// SPDX-License-Identifier: BSD-2-Clause
// How user agent and providers look at a descriptor in the application's memory: its segments, the checks of
// spec/descriptors 2.2-2.3 on form and length, and the one way to write a completion into it.
#pragma once

#include <vipl.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/memory/region_table.hpp"

namespace viaduct {

inline uint32_t operation_of(const VIP_DESCRIPTOR* d) { return d->CS.Control & VIP_CONTROL_OP_MASK; }

// The atomic operations of viaduct/ext.h: the reserved operation, told apart by two of the reserved bits.
inline constexpr uint32_t kControlFetchAdd = 0x0013;
inline constexpr uint32_t kControlCompareSwap = 0x0023;
inline constexpr uint32_t kStatusAtomic = 0x00050000;
inline bool is_atomic(uint32_t control) {
    control &= ~uint32_t{VIP_CONTROL_QFENCE};
    return control == kControlFetchAdd || control == kControlCompareSwap;
}

inline bool is_compare_swap(uint32_t control) {
    return (control & ~uint32_t{VIP_CONTROL_QFENCE}) == kControlCompareSwap;
}
// Bytes of the word that an atomic operation with so many bytes of operands changes; 0: there is none.
inline uint32_t atomic_width(uint32_t control, uint64_t operand_bytes) {
    const uint64_t operands = is_compare_swap(control) ? 2 : 1;
    if (operand_bytes == 4 * operands) return 4;
    return operand_bytes == 8 * operands ? 8 : 0;
}

// First data segment: RDMA descriptors carry one address segment in front (SegCount includes it).
inline const VIP_DESCRIPTOR_SEGMENT* segments_of(const VIP_DESCRIPTOR* d) {
    return reinterpret_cast<const VIP_DESCRIPTOR_SEGMENT*>(reinterpret_cast<const char*>(d) +
                                                           sizeof(VIP_CONTROL_SEGMENT));
}

// A data segment as it is now. The descriptor may lie in memory that a peer may write: what was checked must
// be what is used, so it is read once.
struct SegmentValue {
    uint64_t address;
    uint32_t handle;
    uint32_t length;
    std::byte* bytes() const { return reinterpret_cast<std::byte*>(address); }
};
inline SegmentValue read_segment(const VIP_DATA_SEGMENT& s) {
    const volatile VIP_DATA_SEGMENT& now = s;
    return {now.Data.AddressBits, now.Handle, now.Length};
}

// Read once, as read_segment.
inline uint32_t read_segment_count(const VIP_DESCRIPTOR* d) {
    return *const_cast<const volatile VIP_UINT16*>(&d->CS.SegCount);
}

// SegCount in the lower half and Control in the upper one: what a descriptor says it is, in one load.
inline uint32_t read_form(const VIP_DESCRIPTOR* d) {
    static_assert(offsetof(VIP_CONTROL_SEGMENT, Control) == offsetof(VIP_CONTROL_SEGMENT, SegCount) + 2);
    uint32_t form;
    __builtin_memcpy(&form, &d->CS.SegCount, sizeof form);
    return form;
}
inline constexpr uint32_t make_form(uint32_t control, uint32_t segments) { return control << 16 | segments; }
inline constexpr uint32_t kFormOfMessage = make_form(VIP_CONTROL_OP_SENDRECV, 1);
inline constexpr uint32_t kFormOfWrite = make_form(VIP_CONTROL_OP_RDMAWRITE, 2);  // address and data segment
inline constexpr uint32_t kFormImmediate = make_form(VIP_CONTROL_IMMEDIATE, 0);
// A message of one segment, with immediate data or without.
inline bool is_form_of_message(uint32_t form) { return (form & ~kFormImmediate) == kFormOfMessage; }

// What check_send and check_receive (core/vi/vi_core.hpp) check, for the data segment of one of these forms, in a
// few instructions: it was read once, and lies in the region that its queue has met last. False only says that the
// whole check has to be made.
[[gnu::always_inline]] inline bool may_send(const RegionCache& met, const VIP_DESCRIPTOR* d, const SegmentValue& s,
                                            uint64_t longest) {
    return s.length <= longest && s.length == d->CS.Length && met.covers(s.handle, s.address, s.length);
}
[[gnu::always_inline]] inline bool may_receive(const RegionCache& met, const SegmentValue& s, uint32_t bytes) {
    return bytes <= s.length && met.covers(s.handle, s.address, bytes);
}

// Whether `count` segments of a posted descriptor may be read. Its first 64 bytes, two segments, were found
// to be registered when it was posted; a peer that may write to it can make it seem longer than its memory
// since.
inline bool lies_in_registered_memory(const VIP_DESCRIPTOR* d, uint32_t count, const RegionView& regions,
                                      uint32_t ptag) {
    static_assert(sizeof(VIP_DESCRIPTOR) == sizeof(VIP_CONTROL_SEGMENT) + 2 * sizeof(VIP_DESCRIPTOR_SEGMENT));
    if (count <= 2) [[likely]]
        return true;
    return regions.find_containing(reinterpret_cast<uintptr_t>(d),
                                   sizeof(VIP_CONTROL_SEGMENT) + count * sizeof(VIP_DESCRIPTOR_SEGMENT),
                                   ptag);
}

// Op bits a descriptor of the send queue completes with (spec/descriptors 2.4).
inline uint32_t send_status_op(uint32_t operation) {
    switch (operation) {
        case VIP_CONTROL_OP_RDMAWRITE:
            return VIP_STATUS_OP_RDMA_WRITE;
        case VIP_CONTROL_OP_RDMAREAD:
            return VIP_STATUS_OP_RDMA_READ;
        default:
            return VIP_STATUS_OP_SEND;
    }
}

// The same by its control word, for providers that have atomic operations.
inline uint32_t sent_status_op(uint32_t control) {
    return is_atomic(control) ? kStatusAtomic : send_status_op(control & VIP_CONTROL_OP_MASK);
}

// Writes a completion: Length and whatever was stored before become visible no later than DONE (spec/descriptors
// 2.2: DONE last). Control, SegCount, Reserved, Next and the segments are never touched (spec/compat T1, T2).
inline void publish_status(VIP_DESCRIPTOR* d, uint32_t status_without_done, uint32_t length) {
    d->CS.Length = length;
    std::atomic_ref<VIP_UINT32>(d->CS.Status)
        .store(status_without_done | VIP_STATUS_DONE, std::memory_order_release);
}

}  // namespace viaduct
