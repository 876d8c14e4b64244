// SPDX-License-Identifier: BSD-2-Clause
// The short ways into a lane: one new descriptor of one segment, at once, when nothing stands in its way.
// Whatever is unusual goes the general way of lane_send.cpp. Everything here runs with vi.send.lock held; its
// instructions are counted (tests/bench/instructions.json).
#include <algorithm>
#include <cstring>

#include "core/clock/clock.hpp"
#include "core/sync/holds.hpp"
#include "core/sync/pause.hpp"
#include "providers/paramnet/lanes.hpp"

namespace viaduct::paramnet {

namespace {

constexpr uint32_t kLinesAhead =
    6;  // beyond the line the receiver looks at: its cache holds them from the last lap

// What is left to do after a small send is in its line, when that is more than to complete it for the thread
// that polls the queue.
[[gnu::noinline]] void finish_small(Endpoint& ep, uint32_t position, uint32_t length) {
    Tx& tx = ep.tx;
    WorkQueue& q = ep.vi->send;
    if (tx.acknowledged) {
        finish_on_ack(ep, position, VIP_STATUS_OP_SEND, length);
    } else if (q.completed != position) {  // others come first
        finish(ep, position, VIP_STATUS_OP_SEND, length, After::nothing);
    } else {
        publish_status(q.oldest_incomplete(), VIP_STATUS_OP_SEND, length);
        tell_completion(q, free_barrier);
    }
    free_barrier();
    if (tx.peer->recv_mode.load(std::memory_order_relaxed) != kModePolled) ring_peer(ep);
}

// One new descriptor, one segment, at most kInlineBytes, into the next line. False: anything unusual, and
// nothing has changed. Checks exactly what check_send checks for this form.
[[gnu::noinline]] bool send_small(Endpoint& ep, ViCore& vi) {
    Tx& tx = ep.tx;
    WorkQueue& q = vi.send;
    const uint32_t position = q.taken;
    if (q.posted - position != 1) [[unlikely]]
        return false;
    VIP_DESCRIPTOR* d = q.next_untaken();
    uint32_t form;  // SegCount and Control in one load
    __builtin_memcpy(&form, &d->CS.SegCount, sizeof form);
    if ((form & ~(uint32_t{VIP_CONTROL_IMMEDIATE} << 16)) != 1) [[unlikely]]
        return false;
    const SegmentValue s = read_segment(d->DS[0].Local);
    const uint32_t length = s.length;
    if (length - 1 >= tx.small_limit || length != d->CS.Length) [[unlikely]]
        return false;
    if (!q.buffers.covers(s.handle, s.address, length)) [[unlikely]]
        return false;
    const uint32_t next = tx.next;
    if (next == tx.limit || (tx.used == tx.credits && !take_heard_credits(ep))) [[unlikely]]
        return false;

    Line& line = tx.lines[next & (kLines - 1)];
    copy_small(line.payload, s.bytes(), length);
    line.extra = own_posted(tx);
    uint64_t word = tx.small_meta | make_meta(0, 0, length) | line_tag(next);
    if (form != 1) {
        line.immediate = d->CS.ImmediateData;
        word |= make_meta(0, kFlagImmediate, 0);
    }
    line.word.store(word, std::memory_order_release);
    tx.next = next + 1;
    prefetch_for_writing(&tx.lines[(next + kLinesAhead) & (kLines - 1)]);
    if (length > kOneCacheLine)
        prefetch_for_writing(tx.lines[(next + kLinesAhead) & (kLines - 1)].payload + kOneCacheLine);
    ++tx.used;
    q.taken = position + 1;
    free_barrier();  // pairs with the heavy barrier of a peer that stops polling
    if (tx.peer->recv_mode.load(std::memory_order_relaxed) != kModePolled || q.completed != position ||
        tx.acknowledged || !nobody_to_tell(q, free_barrier)) {
        finish_small(ep, position, length);
        return true;
    }
    publish_status(d, VIP_STATUS_OP_SEND, length);
    q.completed = position + 1;
    return true;
}

// The blocks behind a message that has gone are fetched for writing: the next message is probably as long,
// and the receiver's cache still holds them from the last lap.
void fetch_ahead(Tx& tx, uint32_t length) {
    const uint32_t offset = tx.unit_next % kUnits;
    const uint32_t units = std::min(units_for(length), kUnits - offset);
    for (uint32_t i = 0; i < units; ++i) prefetch_for_writing(tx.blocks + size_t{offset + i} * kUnitBytes);
    tx.ahead_end = tx.unit_next + units;
}

// Into blocks that have been fetched for writing. From 2 KiB up a C library copies by string instructions,
// which are slow on such lines: they are good at those they need not fetch.
void copy_into_fetched(std::byte* to, const std::byte* from, uint32_t n) {
    constexpr uint32_t kPiece = 1024;
    for (; n > kPiece; n -= kPiece, to += kPiece, from += kPiece) {
        std::memcpy(to, from, kPiece);
        asm volatile("" ::: "memory");  // the compiler must not make one copy of all
    }
    std::memcpy(to, from, n);
}

// The same for a message of one fragment, which goes through the block area.
[[gnu::noinline]] bool send_block(Endpoint& ep, ViCore& vi) {
    Tx& tx = ep.tx;
    WorkQueue& q = vi.send;
    const uint32_t position = q.taken;
    if (q.posted - position != 1 || tx.message.active || tx.reply.active) return false;
    VIP_DESCRIPTOR* d = q.next_untaken();
    uint32_t form;  // SegCount and Control in one load
    __builtin_memcpy(&form, &d->CS.SegCount, sizeof form);
    if ((form & ~(uint32_t{VIP_CONTROL_IMMEDIATE} << 16)) != 1) return false;
    const SegmentValue s = read_segment(d->DS[0].Local);
    const uint32_t length = s.length;
    if (length <= kInlineBytes || length > kOnePiece || length > vi.max_transfer || length != d->CS.Length ||
        length >= tx.long_from || !q.buffers.covers(s.handle, s.address, length))
        return false;
    uint32_t unit, unit_after;
    if ((tx.used == tx.credits && !take_heard_credits(ep)) || !reserve_line(ep) ||
        !reserve_units(ep, length, &unit, &unit_after) || !goes_in_one_piece(ep, s.handle, length))
        return false;
    Line& line = next_line(ep);
    uint32_t trial = 0;
    int64_t begun = 0;
    const bool fetched = length >= Ahead::kLearntFrom && static_cast<int32_t>(tx.ahead_end - unit_after) >= 0;
    const uint32_t heard = ep.rx.next.load(std::memory_order_relaxed);
    const bool in_row = heard == tx.heard;
    tx.heard = heard;
    Ahead& ahead = in_row ? tx.ahead_in_row : tx.ahead_answered;
    if (length >= Ahead::kLearntFrom && length <= kMinFragment) {
        if (ahead.in_trial()) [[unlikely]]
            hear_time(ep);
        trial = ahead.next(length, fetched, tx.steady);
        if (trial != 0) [[unlikely]] {
            if (in_row)
                begun = now_ns();
            else
                mark_timed(line, trial, &begun);
        }
    }
    std::byte* const to = tx.blocks + size_t{unit} * kUnitBytes;
    if (fetched) {
        copy_into_fetched(to, s.bytes(), length);
    } else {
        std::memcpy(to, s.bytes(), length);
    }
    tx.unit_next = unit_after;
    if (unit_after >= kUnits) tx.steady = true;
    line.immediate = d->CS.ImmediateData;
    line.extra = length;
    const BlockPlace where{unit};
    __builtin_memcpy(line.payload, &where, sizeof where);
    // Control's IMMEDIATE bit is kFlagImmediate.
    const uint32_t flags = kFlagBlocks | (form >> 18 & 1) | (trial != 0 && !in_row ? kFlagTimed : 0);
    line.word.store(tx.small_meta | make_meta(0, flags, length) | line_tag(tx.next),
                    std::memory_order_release);
    ++tx.next;
    ++tx.used;
    q.taken = position + 1;
    finish_small(ep, position, length);
    prefetch_for_writing(&next_line(ep));
    if (length <= kMinFragment && ahead.fetches(length)) fetch_ahead(tx, length);
    if (trial != 0) [[unlikely]] {
        ahead.sent(trial, now_ns() - begun);
        // The pace of a row is that of its sender; for a receiver that waits for each it would be the
        // latency.
        if (in_row) ahead.answered(trial, 0);
    }
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
// whoever else sends or changes something sets this to zero first (push_sends, update_fast).
void look_for_room(Tx& tx, const WorkQueue& q) {
    if (!tx.fast || tx.acknowledged || q.cq != nullptr) return;
    tx.room = std::min(tx.limit - tx.next, tx.credits - tx.used);
}

[[gnu::noinline]] void kick_in_general(Endpoint& ep, ViCore& vi) {
    Tx& tx = ep.tx;
    tx.room = 0;
    if (tx.fast && (send_small(ep, vi) || write_direct(ep, vi) || send_block(ep, vi))) {
        look_for_room(tx, vi.send);
        return;
    }
    remember_buffer(vi);
    push_sends(ep);
}

// An RDMA write that goes at once leaves the count of short sends as it is.
[[gnu::noinline]] void kick_write(Endpoint& ep, ViCore& vi) {
    if (!write_direct(ep, vi)) kick_in_general(ep, vi);
}

}  // namespace

// The hot path: a message of at most kInlineBytes without immediate data, while no other send is on its way
// and nobody but this thread waits for it. All else is found out by Tx::room.
void kick_send(ViCore& vi) {
    Endpoint& ep = *vi.endpoint;
    Tx& tx = ep.tx;
    WorkQueue& q = vi.send;
    if (tx.room == 0 || q.posted - q.completed != 1) [[unlikely]]
        return kick_in_general(ep, vi);
    auto* d = reinterpret_cast<VIP_DESCRIPTOR*>(q.slots[q.completed & q.mask]);
    if (d->CS.SegCount != 1) [[unlikely]]
        return kick_write(ep, vi);
    // Two loads, although one would do: the program has just written both, and a load that needs two stores
    // waits until they are in the cache, behind all that were made before, those to lines of the peer too.
    asm volatile("");
    if (d->CS.Control != VIP_CONTROL_OP_SENDRECV) [[unlikely]]
        return kick_in_general(ep, vi);
    const SegmentValue s = read_segment(d->DS[0].Local);
    const uint32_t length = s.length;
    if (length > tx.small_limit || length != d->CS.Length || !q.buffers.covers(s.handle, s.address, length))
        [[unlikely]]
        return kick_in_general(ep, vi);

    const uint32_t next = tx.next;
    Line* const lines = tx.lines;
    Line& line = lines[next & (kLines - 1)];
    copy_small(line.payload, s.bytes(), length);
    line.extra = own_posted(tx);
    line.word.store((tx.small_meta | uint64_t{length} << kLengthShift) + line_tag(next),
                    std::memory_order_release);
    tx.next = next + 1;
    Line& later = lines[(next + kLinesAhead) & (kLines - 1)];
    prefetch_for_writing(&later);
    if (length > kOneCacheLine) [[unlikely]]
        prefetch_for_writing(later.payload + kOneCacheLine);
    tx.room = tx.room - 1;
    tx.used = tx.used + 1;
    q.taken = q.taken + 1;
    // Pairs with the heavy barriers of a peer that stops polling and of a thread going to sleep.
    free_barrier();
    if (!holds(tx.peer->recv_mode, uint32_t{kModePolled}) || !holds(q.sleepers, 0u)) [[unlikely]]
        return finish_small(ep, q.completed, length);
    publish_status(d, VIP_STATUS_OP_SEND, length);
    q.completed = q.completed + 1;
}

}  // namespace viaduct::paramnet
