// SPDX-License-Identifier: BSD-2-Clause
// The short ways into a lane: one new descriptor of one segment, at once, when nothing stands in its way.
// Whatever is unusual goes the general way of lane_send.cpp. Everything here runs with vi.send.lock held; its
// instructions are counted (tests/bench/instructions.json).
#include <algorithm>
#include <cstring>

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

// The hot path: one new descriptor, one segment, at most kInlineBytes, into the next line. False: anything
// unusual, and nothing has changed. Checks exactly what check_send checks for this form.
[[gnu::always_inline]] inline bool send_small(Endpoint& ep, ViCore& vi) {
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

// The same for a message of one fragment, which goes through the block area. The blocks behind it are fetched
// for writing meanwhile: the next message is probably as long, and the receiver's cache still holds them from
// the last lap.
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
    if (length <= kInlineBytes || length > kMinFragment || length > vi.max_transfer ||
        length != d->CS.Length || length >= tx.long_from || !q.buffers.covers(s.handle, s.address, length))
        return false;
    uint32_t unit, unit_after;
    if ((tx.used == tx.credits && !take_heard_credits(ep)) || !reserve_line(ep) ||
        !reserve_units(ep, length, &unit, &unit_after))
        return false;
    std::memcpy(tx.blocks + size_t{unit} * kUnitBytes, s.bytes(), length);
    tx.unit_next = unit_after;
    Line& line = next_line(ep);
    line.immediate = d->CS.ImmediateData;
    line.extra = length;
    const BlockPlace where{unit};
    __builtin_memcpy(line.payload, &where, sizeof where);
    const uint32_t flags = kFlagBlocks | (form >> 18 & 1);  // Control's IMMEDIATE bit is kFlagImmediate
    line.word.store(tx.small_meta | make_meta(0, flags, length) | line_tag(tx.next),
                    std::memory_order_release);
    ++tx.next;
    ++tx.used;
    q.taken = position + 1;
    finish_small(ep, position, length);
    prefetch_for_writing(&next_line(ep));
    const uint32_t offset = tx.unit_next % kUnits;
    const uint32_t ahead = std::min(units_for(length), kUnits - offset);
    for (uint32_t i = 0; i < ahead; ++i) prefetch_for_writing(tx.blocks + size_t{offset + i} * kUnitBytes);
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

[[gnu::noinline]] void kick_in_general(Endpoint& ep, ViCore& vi) {
    if (ep.tx.fast && (write_direct(ep, vi) || send_block(ep, vi))) return;
    remember_buffer(vi);
    push_sends(ep);
}

}  // namespace

void kick_send(ViCore& vi) {
    Endpoint& ep = *vi.endpoint;
    if (!ep.tx.fast || !send_small(ep, vi)) [[unlikely]]
        kick_in_general(ep, vi);
}

}  // namespace viaduct::paramnet
