// SPDX-License-Identifier: BSD-2-Clause
// The fast path for a plain descriptor: a message with one data segment, which lies in the region that its queue
// has met last. All others take the slow path (core/vi/work_queue.cpp, core/copy). Used by the engine with the
// queue's lock held.
#pragma once

#include <vipl.h>

#include <algorithm>

#include "core/copy/copy.hpp"
#include "core/vi/vi_core.hpp"

namespace viaduct::packet {

// True: it has the form of a message, and *s is its segment, which may be used as it was read: the descriptor
// itself may be changed by a peer at any time. False: take the slow path.
// `bytes`: of the message that goes there; what is sent is the whole segment.
[[gnu::always_inline]] inline bool is_plain(const WorkQueue& q, const VIP_DESCRIPTOR* d, SegmentValue* s,
                                            uint32_t bytes = UINT32_MAX) {
    if (!is_form_of_message(read_form(d))) return false;
    *s = read_segment(d->DS[0].Local);
    return s->length != 0 && q.buffers.covers(s->handle, s->address, std::min(s->length, bytes));
}

// Its region, for the next one.
inline void remember_region(const ViCore& vi, WorkQueue& q, const VIP_DESCRIPTOR* d, uint32_t bytes = UINT32_MAX) {
    if (operation_of(d) != VIP_CONTROL_OP_SENDRECV || read_segment_count(d) != 1) return;
    const SegmentValue s = read_segment(d->DS[0].Local);
    if (s.length == 0) return;
    vi.regions->check_and_remember(q.buffers, s.handle, s.address, std::min(s.length, bytes), vi.ptag);
}

inline void copy_payload(std::byte* to, const std::byte* from, uint32_t n) {
    constexpr uint32_t kSmall = 128;
    n <= kSmall ? copy_small(to, from, n) : static_cast<void>(std::memcpy(to, from, n));
}

}  // namespace viaduct::packet
