// SPDX-License-Identifier: BSD-2-Clause
// A message inside a line: one path for the most frequent form, one for other forms when nothing stands in their way
// (Tx::fast), and one for descriptors that waited in the queue. Everything here runs with vi.send.lock held; its
// instructions are counted (tests/bench/instructions.json).
#include <algorithm>

#include "core/sync/asymmetric_barrier.hpp"
#include "core/sync/atomic_equals.hpp"
#include "core/sync/pause.hpp"
#include "providers/paramnet/own_memory.hpp"
#include "providers/paramnet/rdma.hpp"
#include "providers/paramnet/send.hpp"

namespace viaduct::paramnet {

namespace {

// Beyond the line the receiver looks at: its cache holds them from the last lap.
constexpr uint32_t kPrefetchedLines = 6;

// What is known of a message inside a line.
enum class Known {
    all,     // Tx::burst_credit has it: one new descriptor without immediate data, with no waiter on its queue
    fast,    // Tx::fast: nothing stands in the way of one new descriptor of one segment
    little,  // its descriptor has been checked, its receive and its line are reserved
};

// The payload is in the next line: what else it says, and what follows from that.
template <Known kKnown>
[[gnu::always_inline]] inline void send_line(Endpoint& ep, WorkQueue& q, VIP_DESCRIPTOR* d, Line& line,
                                             uint32_t length, bool immediate) {
    Tx& tx = ep.tx;
    const uint32_t next = tx.next, position = q.taken;
    line.extra = own_posted(tx);
    uint64_t word = (tx.small_meta | uint64_t{length} << kLengthShift) + line_tag(next);
    if (immediate) {
        line.immediate = d->CS.ImmediateData;
        word |= make_meta(0, kFlagImmediate, 0);
    }
    line.word.store(word, std::memory_order_release);
    tx.next = next + 1;
    if constexpr (kKnown != Known::little) {
        Line& later = tx.lines[(next + kPrefetchedLines) & (kLines - 1)];
        prefetch_for_writing(&later);
        if (length > kOneCacheLine) [[unlikely]]
            prefetch_for_writing(later.payload + kOneCacheLine);
    }
    if constexpr (kKnown == Known::all) tx.burst_credit = tx.burst_credit - 1;
    tx.used = tx.used + 1;
    q.taken = q.taken + 1;
    if constexpr (kKnown == Known::little) {
        finish_short_send(ep, position, length);
    } else {
        // Pairs with the heavy barriers of a peer that stops polling and of a thread going to sleep.
        free_barrier();
        if (!atomic_equals(tx.peer->recv_mode, uint32_t{kModePolled}) || !atomic_equals(q.sleepers, 0u) ||
            (kKnown == Known::fast && (q.cq != nullptr || tx.acknowledged || q.completed != position))) [[unlikely]]
            return finish_short_send(ep, kKnown == Known::all ? q.completed : position, length);
        publish_status(d, VIP_STATUS_OP_SEND, length);
        q.completed = q.completed + 1;
    }
}

// The newest descriptor, if it is the only one left to send, has one segment and fits into a line. False: anything
// unusual, and nothing has changed.
template <Known kKnown>
[[gnu::always_inline]] inline bool send_short(Endpoint& ep, ViCore& vi) {
    constexpr bool kAll = kKnown == Known::all;
    Tx& tx = ep.tx;
    WorkQueue& q = vi.send;
    const uint32_t position = kAll ? q.completed : q.taken;
    if ((kAll && tx.burst_credit == 0) || q.posted - position != 1) [[unlikely]]
        return false;
    auto* d = reinterpret_cast<VIP_DESCRIPTOR*>(q.slots[position & q.mask]);
    uint32_t form = kFormOfMessage;
    if constexpr (kAll) {
        if (d->CS.SegCount != 1) [[unlikely]]
            return false;
        // Two loads, although one would do: the program has just written both, and a load that needs two stores
        // waits until they are in the cache, behind all that were made before, those to lines of the peer too.
        asm volatile("");
        if (d->CS.Control != VIP_CONTROL_OP_SENDRECV) [[unlikely]]
            return false;
    } else {
        form = read_form(d);
        if (!is_form_of_message(form)) return false;
    }
    const SegmentValue s = read_segment(d->DS[0].Local);
    if (!may_send(q.buffers, d, s, tx.small_limit)) [[unlikely]]
        return false;
    if constexpr (!kAll)
        if (tx.next == tx.limit || (tx.used == tx.credits && !take_new_credits(ep))) return false;
    Line& line = next_line(ep);
    copy_small(line.payload, s.bytes(), s.length);
    send_line<kKnown>(ep, q, d, line, s.length, !kAll && form != kFormOfMessage);
    return true;
}

// The region of the newest descriptor's buffer, for the hot path of the next one.
[[gnu::noinline]] void remember_buffer(ViCore& vi) {
    WorkQueue& q = vi.send;
    const VIP_DESCRIPTOR* d = q.at(q.posted - 1);
    const uint32_t control = d->CS.Control;
    if (control != VIP_CONTROL_OP_SENDRECV && control != VIP_CONTROL_OP_RDMAWRITE) return;
    if (d->CS.SegCount != 1 + control) return;  // an RDMA write has its address segment in front
    const SegmentValue s = read_segment(d->DS[control].Local);
    if (!q.buffers.covers(s.handle, s.address, s.length))
        vi.regions->check_and_remember(q.buffers, s.handle, s.address, s.length, vi.ptag);
}

// How many small sends may follow without another look at what allows them: kick_send() counts them down, and
// other senders, and changes of a condition, set this to zero first (push_sends, update_fast).
void look_for_room(Tx& tx, const WorkQueue& q) {
    if (!tx.fast || tx.acknowledged || q.cq != nullptr) return;
    tx.burst_credit = std::min(tx.limit - tx.next, tx.credits - tx.used);
}

// An RDMA write that goes at once leaves the count of short sends as it is.
[[gnu::noinline]] void kick_unusual(Endpoint& ep, ViCore& vi) {
    Tx& tx = ep.tx;
    if (tx.fast && write_direct(ep, vi)) return;
    tx.burst_credit = 0;
    if (tx.fast && (send_short<Known::fast>(ep, vi) || send_block(ep, vi))) return look_for_room(tx, vi.send);
    remember_buffer(vi);
    push_sends(ep);
}

}  // namespace

void kick_send(ViCore& vi) {
    Endpoint& ep = *vi.endpoint;
    if (!send_short<Known::all>(ep, vi)) [[unlikely]]
        kick_unusual(ep, vi);
}

Step begin_short(Endpoint& ep, VIP_DESCRIPTOR* d, uint32_t total) {
    if (!reserve_line(ep)) return ep.tx.stopped ? Step::stopped : Step::waits;
    WorkQueue& q = ep.vi->send;
    Line& line = next_line(ep);
    SegmentCursor cursor;
    cursor.begin(d, total, ep.vi->regions, ep.vi->ptag);
    const uint32_t n = (ep.servicing ? gather_accessible : gather)(cursor, line.payload, total);
    if (n != total) [[unlikely]] {
        // The program has unmapped its memory, or changed the descriptor while it was ours (spec/descriptors 2.6).
        ep.vi->cause_of(q).cause.kind = CauseKind::changed_or_unmapped;
        const uint32_t error = ep.servicing ? VIP_STATUS_PROTECTION_ERROR : VIP_STATUS_FORMAT_ERROR;
        finish(ep, q.taken++, VIP_STATUS_OP_SEND | error, 0, reliable(ep) ? After::break_silently : After::nothing);
        return Step::done;
    }
    send_line<Known::little>(ep, q, d, line, total, (d->CS.Control & VIP_CONTROL_IMMEDIATE) != 0);
    return Step::done;
}

void finish_short_send(Endpoint& ep, uint32_t position, uint32_t length) {
    Tx& tx = ep.tx;
    WorkQueue& q = ep.vi->send;
    light_barrier();  // pairs with the heavy barrier of a peer that stops polling
    if (tx.needs_fence) std::atomic_thread_fence(std::memory_order_seq_cst);
    if (tx.peer->recv_mode.load(std::memory_order_relaxed) != kModePolled) ring_peer(ep);
    if (tx.acknowledged) {
        finish_on_ack(ep, position, VIP_STATUS_OP_SEND, length);
    } else if (q.completed != position) {  // others come first
        finish(ep, position, VIP_STATUS_OP_SEND, length, After::nothing);
    } else {
        publish_status(q.oldest_incomplete(), VIP_STATUS_OP_SEND, length);
        tell_completion(q, light_barrier);
    }
}

}  // namespace viaduct::paramnet
