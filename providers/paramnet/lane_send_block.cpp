// SPDX-License-Identifier: BSD-2-Clause
// The fast path through the blocks: one new descriptor of one segment, in one piece, when nothing stands in its
// way. Everything here runs with vi.send.lock held.
#include <algorithm>
#include <cstring>

#include "core/clock/clock.hpp"
#include "core/sync/pause.hpp"
#include "providers/paramnet/rendezvous.hpp"
#include "providers/paramnet/send.hpp"

namespace viaduct::paramnet {

namespace {

// The blocks behind a message that was sent are fetched for writing: the next message is probably as long,
// and the receiver's cache still holds them from the last lap.
void prefetch_blocks(Tx& tx, uint32_t length) {
    const uint32_t offset = tx.blocks.next % kUnits;
    const uint32_t units = std::min(units_for(length), kUnits - offset);
    for (uint32_t i = 0; i < units; ++i) prefetch_for_writing(tx.blocks.at + size_t{offset + i} * kUnitBytes);
    tx.blocks.fetched_to = tx.blocks.next + units;
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

}  // namespace

bool send_block(Endpoint& ep, ViCore& vi) {
    Tx& tx = ep.tx;
    WorkQueue& q = vi.send;
    const uint32_t position = q.taken;
    if (q.posted - position != 1 || tx.message.active || tx.rdma.reply.active) return false;
    VIP_DESCRIPTOR* d = q.next_untaken();
    const uint32_t form = read_form(d);
    if (!is_form_of_message(form)) return false;
    const SegmentValue s = read_segment(d->DS[0].Local);
    const uint32_t length = s.length;
    if (length <= kInlineBytes || length >= tx.learnt.long_from ||
        !may_send(q.buffers, d, s, std::min<uint64_t>(kOnePiece, vi.max_transfer)))
        return false;
    uint32_t unit, unit_after;
    if ((tx.used == tx.credits && !take_new_credits(ep)) || !reserve_line(ep) ||
        !reserve_units(ep, length, &unit, &unit_after) || !goes_in_one_piece(ep, s.handle, length))
        return false;
    Line& line = next_line(ep);
    uint32_t trial = 0;
    int64_t begun = 0;
    const bool fetched =
        length >= PrefetchTuner::kLearntFrom && static_cast<int32_t>(tx.blocks.fetched_to - unit_after) >= 0;
    const uint32_t received = ep.rx.next.load(std::memory_order_relaxed);
    const bool in_row = received == tx.learnt.received;
    tx.learnt.received = received;
    PrefetchTuner& prefetch = in_row ? tx.learnt.in_row : tx.learnt.answered;
    if (length >= PrefetchTuner::kLearntFrom && length <= kMinFragment) {
        if (prefetch.trial().open()) [[unlikely]]
            read_probe_result(ep);
        trial = prefetch.next(length, fetched, tx.blocks.steady, &tx.learnt.last_trial);
        if (trial != 0) [[unlikely]] {
            if (in_row)
                begun = now_ns();
            else
                mark_probe(line, kProbePrefetch, trial, &begun);
        }
    }
    std::byte* const to = tx.blocks.at + size_t{unit} * kUnitBytes;
    if (fetched) {
        copy_into_fetched(to, s.bytes(), length);
    } else {
        std::memcpy(to, s.bytes(), length);
    }
    tx.blocks.next = unit_after;
    if (unit_after >= kUnits) tx.blocks.steady = true;
    line.immediate = d->CS.ImmediateData;
    line.extra = length;
    const BlockPlace where{unit};
    __builtin_memcpy(line.payload, &where, sizeof where);
    // Control's IMMEDIATE bit is kFlagImmediate.
    const uint32_t flags = kFlagBlocks | (form >> 18 & 1) | (trial != 0 && !in_row ? kFlagProbe : 0);
    line.word.store(tx.small_meta | make_meta(0, flags, length) | line_tag(tx.next),
                    std::memory_order_release);
    ++tx.next;
    ++tx.used;
    q.taken = position + 1;
    finish_short_send(ep, position, length);
    prefetch_for_writing(&next_line(ep));
    if (length <= kMinFragment && prefetch.fetches(length)) prefetch_blocks(tx, length);
    if (trial != 0) [[unlikely]] {
        prefetch.trial().sent(trial, now_ns() - begun);
        // The pace of a row is that of its sender; for a receiver that waits for each it would be the
        // latency.
        if (in_row) prefetch.answered(trial, 0);
    }
    return true;
}

}  // namespace viaduct::paramnet
