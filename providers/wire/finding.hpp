// SPDX-License-Identifier: BSD-2-Clause
// Why an end breaks a connection, as a disconnect carries it to the other end: a code of this table and numbers, no
// text. It decides nothing and serves people only. The numbers are the peer's own: the length of its message, the
// range that its operation asked for. So no peer sees lengths, addresses or tags of this end. One code says that
// memory is not open to the peer, whatever the reason is: no peer finds by trying which handles there are, or where a
// region ends that it may not use. Used by Link and by the hosts.
#pragma once

#include <cstdint>

#include "providers/wire/format.hpp"

namespace viaduct::wire {

// The numbers belong to the format: none gets another meaning.
enum class FindingCode : uint16_t {
    none = 0,
    // A message of the peer.
    no_receive = 1,         // length: of the message
    receive_too_small = 2,  // the same
    // A range: of a segment of the sender, or of the target that the peer named.
    unknown_handle = 3,  // of a segment
    outside_region = 4,  // of either; the region of a target is open to the peer
    other_ptag = 5,      // of a segment
    not_open = 6,        // of a target: the handle is not registered, or the region has another tag or lacks the right
    vi_not_enabled = 7,  // of a target
    // A descriptor of the sender.
    control = 8,
    segment_count = 9,
    no_address_segment = 10,
    no_rdma_read = 11,
    read_with_immediate = 12,
    descriptor_past_region = 13,
    length_sum = 14,
    transfer_size = 15,
    no_atomics = 16,
    atomic_segments = 17,
    atomic_width = 18,
    atomic_alignment = 19,
    changed_or_unmapped = 20,
    queue_full = 21,
    misaligned = 22,
    not_registered = 23,
    cq_full = 24,
    device = 25,
    count_
};

enum class FindingOperation : uint8_t { none = 0, send = 1, receive = 2, write = 3, read = 4, atomic = 5, count_ };

struct Finding {
    FindingCode code = FindingCode::none;
    FindingOperation operation = FindingOperation::none;
    bool of_target = false;  // the range is in the memory that the peer's operation named
    uint32_t handle = 0;
    uint64_t address = 0;
    uint64_t length = 0;

    explicit operator bool() const { return code != FindingCode::none; }
};

// Behind the fields of a disconnect, or not at all:
// 0 code(2), 2 operation(1), 3 of_target in bit 0(1), 4 handle(4), 8 address(8), 16 length(8).
inline constexpr uint32_t kFindingBytes = 24;

// Numbers that code and of_target do not have are written as zeros.
void write_finding(std::byte* to, const Finding&);
// The finding of a disconnect. None: the disconnect has no finding, or a code, an operation or a length that no peer
// sends. Numbers that the code does not have are zeros, whatever has come.
Finding read_finding(const Frame&);

}  // namespace viaduct::wire
