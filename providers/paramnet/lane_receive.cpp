// SPDX-License-Identifier: BSD-2-Clause
// The receiving half of a lane: looks for lines, and takes the short and usual messages. What else a line may
// be is in receive_message.cpp. Everything here runs with vi.recv.lock held; its instructions are counted
// (tests/bench/instructions.json).
#include <algorithm>
#include <cstring>

#include "core/sync/holds.hpp"
#include "providers/paramnet/group.hpp"
#include "providers/paramnet/lanes.hpp"
#include "providers/paramnet/nic.hpp"
#include "providers/paramnet/own_memory.hpp"

namespace viaduct::paramnet {

namespace {

// Messages that came alone before a poll looks behind one again.
constexpr uint32_t kAlone = 16;

// Flags of a line on the hot path besides kFlagImmediate.
enum class Acks : uint32_t { perhaps = kFlagBlocks << 4, none = (kFlagBlocks | kFlagAck) << 4 };

// The hot path, first half: a message inside its line goes into a receive of one segment, which is then taken
// but not complete. Null: anything unusual, and nothing has changed. Checks exactly what check_receive checks
// for this form.
[[gnu::always_inline]] inline VIP_DESCRIPTOR* place_small(Endpoint& ep, ViCore& vi, const Line& line,
                                                          uint32_t meta, Acks acks, uint32_t* status) {
    WorkQueue& q = vi.recv;
    // Operation send, no block flag.
    if ((meta & (15 | static_cast<uint32_t>(acks))) != kLineSend || !q.has_untaken()) [[unlikely]]
        return nullptr;
    VIP_DESCRIPTOR* d = q.next_untaken();
    uint32_t form;  // SegCount and Control in one load
    __builtin_memcpy(&form, &d->CS.SegCount, sizeof form);
    if ((form & ~(uint32_t{VIP_CONTROL_IMMEDIATE} << 16)) != 1) [[unlikely]]
        return nullptr;
    const uint32_t length = length_in(meta);
    const SegmentValue s = read_segment(d->DS[0].Local);
    if (length > kInlineBytes || length > s.length) [[unlikely]]
        return nullptr;
    if (!q.buffers.covers(s.handle, s.address, length)) [[unlikely]]
        return nullptr;
    copy_small(s.bytes(), line.payload, length);
    ep.peer_posted.store(line.extra, std::memory_order_relaxed);
    *status = VIP_STATUS_OP_RECEIVE;
    if ((meta & kFlagImmediate << 4) != 0) {
        d->CS.ImmediateData = line.immediate;
        *status |= VIP_STATUS_IMMEDIATE;
    }
    ++q.taken;
    return d;
}

inline bool receive_small(Endpoint& ep, ViCore& vi, const Line& line, uint32_t meta) {
    if (ep.rx.message.kind != IncomingMessage::none) [[unlikely]]
        return false;
    WorkQueue& q = vi.recv;
    uint32_t status;
    VIP_DESCRIPTOR* d = place_small(ep, vi, line, meta, Acks::perhaps, &status);
    if (d == nullptr) [[unlikely]]
        return false;
    if ((meta & kFlagAck << 4) != 0) [[unlikely]] {
        count_ack(ep.rx);
        complete_head(q, status, length_in(meta));
        tell_ack(ep);
        return true;
    }
    publish_status(d, status, length_in(meta));
    tell_completion(q, light_barrier);
    return true;
}

[[gnu::noinline]] void publish_consumed(Endpoint& ep, uint32_t next) {
    Rx& rx = ep.rx;
    rx.published = next;
    rx.units_published = rx.unit_next;
    rx.own->consumed.store(uint64_t{next} | uint64_t{rx.unit_next} << 32, std::memory_order_release);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the fence in enter_backlog
    if (rx.peer->space_wanted.load(std::memory_order_relaxed) != 0 &&
        rx.peer->send_mode.load(std::memory_order_relaxed) != kModePolled)
        ring_peer(ep);
}

[[gnu::noinline]] void push_from_receive(Endpoint& ep) {
    WorkQueue& q = ep.vi->send;
    q.lock.lock();
    collect_acks(ep);
    push_sends(ep);
    q.lock.unlock();
}

// What is left to do after a message came alone, when there is anything.
[[gnu::noinline]] void finish_alone(Endpoint& ep) {
    Rx& rx = ep.rx;
    tell_completion(ep.vi->recv, free_barrier);
    const uint32_t next = rx.next.load(std::memory_order_relaxed);
    if (next - rx.published >= kPublishLines || rx.unit_next - rx.units_published >= kPublishUnits)
        [[unlikely]]
        publish_consumed(ep, next);
    if (ep.send_attention.load(std::memory_order_relaxed) != 0) [[unlikely]]
        push_from_receive(ep);
}

// The same for a message inside its line, for which nothing has to be published yet (Rx::alone).
[[gnu::noinline]] void finish_short(Endpoint& ep, WorkQueue& q) {
    tell_completion(q, free_barrier);
    if (!holds(ep.send_attention, 0u)) [[unlikely]]
        push_from_receive(ep);
}

[[gnu::noinline]] void take_in_general(Endpoint& ep) {
    Rx& rx = ep.rx;
    const uint32_t before = rx.next.load(std::memory_order_relaxed);
    rx.alone = 0;
    if (take_lines(ep, kPollBudget)) remind(ep);
    const uint32_t next = rx.next.load(std::memory_order_relaxed);
    // No further than to the line with which we tell the sender how far we are.
    if (next - before == 1 && rx.message.kind == IncomingMessage::none && !ep.vi->is_marked_broken() &&
        asymmetric_barrier_available())
        rx.alone = std::min(kAlone, kPublishLines - (next - rx.published));
    if (!ep.recv_hot.load(std::memory_order_relaxed)) [[unlikely]]
        try_promote(ep, ep.recv_group);
    if (ep.send_attention.load(std::memory_order_relaxed) != 0) [[unlikely]]
        push_from_receive(ep);
}

// The same for a message of one fragment in the block area, into a receive of one segment. False: anything
// unusual, and nothing has changed.
[[gnu::noinline]] bool take_block_alone(Endpoint& ep, const Line& line, uint64_t word) {
    Rx& rx = ep.rx;
    ViCore& vi = *ep.vi;
    WorkQueue& q = vi.recv;
    const uint32_t meta = meta_of(word), length = length_in(meta);
    if ((meta & (15 | (kFlagBlocks | kFlagAck | kFlagTimed) << 4)) != (kLineSend | kFlagBlocks << 4) ||
        length == 0 || read_extra(line) != length || !q.has_untaken())
        return false;
    VIP_DESCRIPTOR* d = q.next_untaken();
    uint32_t form;  // SegCount and Control in one load
    __builtin_memcpy(&form, &d->CS.SegCount, sizeof form);
    const SegmentValue s = read_segment(d->DS[0].Local);
    if ((form & ~(uint32_t{VIP_CONTROL_IMMEDIATE} << 16)) != 1 || length > s.length ||
        !q.buffers.covers(s.handle, s.address, length))
        return false;
    const std::byte* from = payload_of(ep, line, kFlagBlocks, length, read_payload<BlockPlace>(line).unit);
    if (from == nullptr) {  // it made no sense, and the connection is broken now
        rx.alone = 0;
        return true;
    }
    std::memcpy(s.bytes(), from, length);
    uint32_t status = VIP_STATUS_OP_RECEIVE;
    if ((meta & kFlagImmediate << 4) != 0) {
        d->CS.ImmediateData = line.immediate;
        status |= VIP_STATUS_IMMEDIATE;
    }
    ++q.taken;
    --rx.alone;
    rx.next.store(static_cast<uint32_t>(word), std::memory_order_relaxed);
    publish_status(d, status, length);
    finish_alone(ep);
    return true;
}

// The lane's next line is there, and is not for the hot path.
[[gnu::noinline]] void take_unusual(Endpoint& ep, ViCore& vi) {
    Rx& rx = ep.rx;
    if (rx.alone == 0 || !holds(rx.polled, 1u)) return take_in_general(ep);
    const uint32_t position = rx.next.load(std::memory_order_relaxed);
    const Line& line = rx.lines.load(std::memory_order_relaxed)[position & (kLines - 1)];
    const uint64_t word = line.word.load(std::memory_order_acquire);
    uint32_t status;
    const uint32_t meta = meta_of(word);
    VIP_DESCRIPTOR* d = place_small(ep, vi, line, meta, Acks::none, &status);
    if (d == nullptr) [[unlikely]] {
        if (!take_block_alone(ep, line, word)) take_in_general(ep);
        return;
    }
    --rx.alone;
    const auto next = static_cast<uint32_t>(word);  // the tag of a line is the position behind it
    rx.next.store(next, std::memory_order_relaxed);
    publish_status(d, status, length_in(meta));
    finish_alone(ep);
}

// The hot path, which checks exactly what check_receive checks for this form. Where messages come one at a
// time, this takes one and leaves the line behind it alone: the sender has that line ready for writing. A
// look would fetch it from there, and no store of ours, the answer to this message among them, is seen by
// others before that look has its result. Who is rung for messages instead takes all there are: nobody rings
// again for those he leaves.
[[gnu::always_inline]] inline void take_arrivals_now(Endpoint& ep, ViCore& vi) {
    Rx& rx = ep.rx;
    const uint32_t position = rx.next.load(std::memory_order_relaxed);
    const Line& line = rx.lines.load(std::memory_order_relaxed)[position & (kLines - 1)];
    const uint64_t word = line.word.load(std::memory_order_acquire);
    const uint32_t next = line_tag(position);  // the tag of a line is the position behind it
    if (static_cast<uint32_t>(word) != next) {
        if (!holds(ep.send_attention, 0u)) [[unlikely]]
            push_from_receive(ep);
        return;
    }
    WorkQueue& q = vi.recv;
    const uint32_t meta = meta_of(word);
    // A send without flags, its length within the line.
    if (rx.alone == 0 || !holds(rx.polled, 1u) || (meta & 0xFF) != kLineSend ||
        meta >= (kInlineBytes + 1) << 8 || !q.has_untaken()) [[unlikely]]
        return take_unusual(ep, vi);
    auto* d = reinterpret_cast<VIP_DESCRIPTOR*>(q.slots[q.taken & q.mask]);
    uint32_t form;  // SegCount and Control in one load: they were written long ago
    __builtin_memcpy(&form, &d->CS.SegCount, sizeof form);
    const SegmentValue s = read_segment(d->DS[0].Local);
    const uint32_t length = length_in(meta);
    if (form != 1 || length > s.length || !q.buffers.covers(s.handle, s.address, length)) [[unlikely]]
        return take_unusual(ep, vi);
    copy_small(s.bytes(), line.payload, length);
    ep.peer_posted.store(line.extra, std::memory_order_relaxed);
    q.taken = q.taken + 1;
    rx.alone = rx.alone - 1;
    rx.next.store(next, std::memory_order_relaxed);
    publish_status(d, VIP_STATUS_OP_RECEIVE, length);
    free_barrier();  // pairs with the heavy barrier of a thread going to sleep
    if (q.cq != nullptr || !holds(q.sleepers, 0u) || !holds(ep.send_attention, 0u)) [[unlikely]]
        return finish_short(ep, q);
    q.completed = q.completed + 1;
}

}  // namespace

void take_arrivals(Endpoint& ep) { take_arrivals_now(ep, *ep.vi); }

namespace {

enum class By { application, progress, leaving };

// The line that broke the connection is still there until the break is settled, and must not be taken for a second
// message. An end that leaves takes what came before another reason.
template <By kBy>
bool takes_no_more(const Endpoint& ep) {
    return kBy == By::leaving ? ep.rx.ended : ep.vi->is_marked_broken();
}

// By a thread of ours, and at the end, each line goes the general way.
template <By kBy>
bool take_lines_by(Endpoint& ep, uint32_t budget) {
    constexpr bool kServing = kBy != By::application;
    Rx& rx = ep.rx;
    ViCore& vi = *ep.vi;
    if (takes_no_more<kBy>(ep)) [[unlikely]]
        return false;
    const Line* const lines = rx.lines.load(std::memory_order_relaxed);
    uint32_t next = rx.next.load(std::memory_order_relaxed);
    const uint32_t first = next, end = next + budget;
    if constexpr (kServing) rx.alone = 0;  // it counted from where the application was
    for (;;) {
        const Line& line = lines[next & (kLines - 1)];
        const uint64_t word = line.word.load(std::memory_order_acquire);
        if (static_cast<uint32_t>(word) != line_tag(next)) return false;
        if (next == end) [[unlikely]]
            return true;
        bool units_used = false;
        if (kServing || !receive_small(ep, vi, line, meta_of(word))) [[unlikely]] {
            rx.in_row = next != first;
            if (!take_line(ep, line, meta_of(word))) return false;
            units_used = rx.unit_next - rx.units_published >= kPublishUnits;
        }
        rx.next.store(++next, std::memory_order_relaxed);
        if (units_used || next - rx.published >= kPublishLines) [[unlikely]]
            publish_consumed(ep, next);
        if (takes_no_more<kBy>(ep)) [[unlikely]]
            return false;
    }
}

}  // namespace

bool take_lines(Endpoint& ep, uint32_t budget) { return take_lines_by<By::application>(ep, budget); }
bool serve_lines(Endpoint& ep, uint32_t budget) { return take_lines_by<By::progress>(ep, budget); }
void take_last_lines(Endpoint& ep) { take_lines_by<By::leaving>(ep, kLines); }

void kick_recv(ViCore& vi) {
    Endpoint& ep = *vi.endpoint;
    if (!ep.connected) [[unlikely]]
        return;
    ep.rx.own->posted.store((uint64_t{1} << 32) | (vi.recv.posted - ep.rx.base), std::memory_order_release);
}

void poll_recv(ViCore& vi) { take_arrivals_now(*vi.endpoint, vi); }

}  // namespace viaduct::paramnet
