// SPDX-License-Identifier: BSD-2-Clause
// Why a descriptor or an RDMA operation is refused, in numbers: found where it is refused, told to the other end, put
// into words by the user agent. All of it is looked up after the refusal; the checks themselves only say yes or no.
#pragma once

#include <vipl.h>

#include <cstdint>

#include "core/memory/region_table.hpp"

namespace viaduct {

struct ViCore;

// The comments say what Cause::low and Cause::high hold.
enum class CauseKind : uint8_t {
    none,
    unknown_handle,      // no live region has the handle
    outside_region,      // first byte of the region, and the first behind it
    other_ptag,          // tag of the region, tag of the VI
    memory_not_enabled,  // the region does not allow the RDMA operation
    vi_not_enabled,      // the VI of the target does not allow it
    receive_too_small,   // high: bytes that the receive holds; length: of the message
    no_receive,          // high: receives posted since the connection began
    control,             // low: the Control field
    segment_count,       // SegCount, and the most that the NIC takes
    no_address_segment,
    no_rdma_read,  // neither NIC nor reliability level has RDMA read
    read_with_immediate,
    descriptor_past_region,
    length_sum,     // length: CS.Length; high: sum of the data segments
    transfer_size,  // length: sum of the data segments; high: MaxTransferSize of the VI
    no_atomics,
    atomic_segments,   // low: SegCount
    atomic_width,      // length: bytes of operands; high: widths that the NIC takes
    atomic_alignment,  // high: bytes of the word
    changed_or_unmapped,
    disconnected,  // the other end has called VipDisconnect, or closed its NIC
    process_ended,
    no_answer,  // the network has given up
    link_down,
    protocol,        // words of the peer that no correct peer writes
    damaged,         // data arrived damaged
    queue_full,      // high: depth of the queue
    misaligned,      // of the descriptor
    not_registered,  // the descriptor
    cq_full,         // high: entries
    device,          // the NIC failed
    not_open,        // of the peer's memory: unknown_handle, other_ptag or memory_not_enabled, which it does not say
    count_
};

enum class CauseOperation : uint8_t { send, receive, rdma_write, rdma_read, atomic, none };

// Five words, so that it fits where an end tells the other one.
struct Cause {
    CauseKind kind = CauseKind::none;
    CauseOperation operation = CauseOperation::none;
    uint16_t segment = 0;  // of the descriptor, from 1; 0: not one of its segments
    uint32_t handle = 0;
    uint64_t address = 0;
    uint64_t length = 0;
    uint64_t low = 0;
    uint64_t high = 0;

    // In place of a number that the other end does not send. `high` stands for low and high.
    static constexpr uint64_t kNotSent = UINT64_MAX;

    explicit operator bool() const { return kind != CauseKind::none; }
};
static_assert(sizeof(Cause) == 40);

inline constexpr uint32_t kCauseWords = sizeof(Cause) / sizeof(uint64_t);

// What a range lacks: of a region table of this process or of a peer. `flags`: the RegionFlag that it must have.
Cause explain_range(const RegionView&, uint32_t handle, uint64_t address, uint64_t length, uint32_t ptag,
                    uint32_t flags);

// The mistake in a descriptor of the send queue, by the rules of check_send. None: the descriptor is right.
Cause explain_send(const ViCore&, const VIP_DESCRIPTOR*);
// The same for a receive, by the rules of check_receive.
Cause explain_receive(const ViCore&, const VIP_DESCRIPTOR*);
CauseOperation operation_of_send(const VIP_DESCRIPTOR*);

}  // namespace viaduct
