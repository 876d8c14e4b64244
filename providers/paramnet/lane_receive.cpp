// SPDX-License-Identifier: BSD-2-Clause
// The receiving half of a lane: finds lines, and places messages that lie inside a line into posted receives (fast
// path of docs/data-path.md; checks: spec/descriptors 2.3). Other kinds of line are in receive_message.cpp. All with
// vi.recv.lock held. It writes the receive, its buffer and this end's counters; instructions are counted (tests/bench).
#include <algorithm>
#include <cstring>

#include "core/sync/atomic_equals.hpp"
#include "providers/paramnet/group.hpp"
#include "providers/paramnet/nic.hpp"
#include "providers/paramnet/own_memory.hpp"
#include "providers/paramnet/receive.hpp"
#include "providers/paramnet/send.hpp"

namespace viaduct::paramnet {

namespace {

// Messages that came alone before a poll looks behind one again.
constexpr uint32_t kLinesAlone = 16;

const Line& line_at(const Rx& rx, uint32_t position) {
    return rx.lines.load(std::memory_order_relaxed)[position & (kLines - 1)];
}

// How a message inside its line is taken.
enum class Taking {
    plain,  // it came alone, and neither it nor its receive has immediate data
    alone,  // it came alone, and the sender waits for no acknowledgement
    in_row,
};

// A message inside its line goes into a receive of one segment, which is then taken but not complete. False:
// another form, and nothing has changed.
template <Taking kTaking>
[[gnu::always_inline]] inline bool place_short(Endpoint& ep, ViCore& vi, const Line& line, uint32_t meta,
                                               VIP_DESCRIPTOR** into) {
    constexpr uint32_t kAnyFlag = 15, kAcks = kTaking == Taking::alone ? kFlagAck : 0;
    constexpr uint32_t kRefused = kTaking == Taking::plain ? kAnyFlag : kFlagBlocks | kAcks;
    WorkQueue& q = vi.recv;
    if ((meta & (15 | kRefused << 4)) != kLineSend || meta >= (kInlineBytes + 1) << 8 || !q.has_untaken()) [[unlikely]]
        return false;
    auto* d = reinterpret_cast<VIP_DESCRIPTOR*>(q.slots[q.taken & q.mask]);
    const uint32_t form = read_form(d);  // written long ago
    const SegmentValue s = read_segment(d->DS[0].Local);
    const uint32_t length = length_in(meta);
    const bool fits = kTaking == Taking::plain ? form == kFormOfMessage : is_form_of_message(form);
    if (!fits || !may_receive(q.buffers, s, length)) [[unlikely]]
        return false;
    copy_small(s.bytes(), line.payload, length);
    ep.peer_posted.store(line.extra, std::memory_order_relaxed);
    q.taken = q.taken + 1;
    *into = d;
    return true;
}

bool take_short_in_row(Endpoint& ep, const Line& line, uint32_t meta) {
    VIP_DESCRIPTOR* d;
    if (ep.rx.message.kind != IncomingMessage::none || !place_short<Taking::in_row>(ep, *ep.vi, line, meta, &d))
        [[unlikely]]
        return false;
    close_receive(ep, VIP_STATUS_OP_RECEIVE, flags_in(meta), line.immediate, length_in(meta));
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
[[gnu::noinline]] void finish_alone(Endpoint& ep, WorkQueue& q) {
    tell_completion(q, free_barrier);
    if (!atomic_equals(ep.send_attention, 0u)) [[unlikely]]
        push_from_receive(ep);
}

// The line of a message that came alone has been taken, and its receive holds it: completes that. Nothing has to be
// published yet (Rx::poll_budget).
template <Taking kTaking>
[[gnu::always_inline]] inline void close_alone(Endpoint& ep, WorkQueue& q, VIP_DESCRIPTOR* d, const Line& line,
                                               uint64_t word) {
    Rx& rx = ep.rx;
    const uint32_t meta = meta_of(word);
    uint32_t status = VIP_STATUS_OP_RECEIVE;
    if (kTaking != Taking::plain && (meta & kFlagImmediate << 4) != 0) {
        d->CS.ImmediateData = line.immediate;
        status |= VIP_STATUS_IMMEDIATE;
    }
    rx.poll_budget = rx.poll_budget - 1;
    rx.next.store(static_cast<uint32_t>(word), std::memory_order_relaxed);  // a line's tag is the position behind it
    publish_status(d, status, length_in(meta));
    free_barrier();  // pairs with the heavy barrier of a thread going to sleep
    if (q.cq != nullptr || !atomic_equals(q.sleepers, 0u) || !atomic_equals(ep.send_attention, 0u)) [[unlikely]]
        return finish_alone(ep, q);
    q.completed = q.completed + 1;
}

template <Taking kTaking>
[[gnu::always_inline]] inline bool take_short_alone(Endpoint& ep, ViCore& vi, const Line& line, uint64_t word) {
    VIP_DESCRIPTOR* d;
    if (!place_short<kTaking>(ep, vi, line, meta_of(word), &d)) [[unlikely]]
        return false;
    close_alone<kTaking>(ep, vi.recv, d, line, word);
    return true;
}

[[gnu::noinline]] void take_in_general(Endpoint& ep) {
    Rx& rx = ep.rx;
    const uint32_t before = rx.next.load(std::memory_order_relaxed);
    rx.poll_budget = 0;
    if (take_lines(ep, kPollBudget)) request_poll(ep);
    const uint32_t next = rx.next.load(std::memory_order_relaxed);
    // No further than to the line with which we tell the sender how far we are.
    if (next - before == 1 && rx.message.kind == IncomingMessage::none && !ep.vi->is_marked_broken() &&
        asymmetric_barrier_available())
        rx.poll_budget = std::min(kLinesAlone, kPublishLines - (next - rx.published));
    if (!ep.recv_hot.load(std::memory_order_relaxed)) [[unlikely]]
        try_promote(ep, ep.recv_group);
    if (ep.send_attention.load(std::memory_order_relaxed) != 0) [[unlikely]]
        push_from_receive(ep);
}

// The same for a message of one fragment in the block area, into a receive of one segment. False: anything
// unusual, and nothing has changed.
[[gnu::noinline]] bool take_block_alone(Endpoint& ep, ViCore& vi, const Line& line, uint64_t word) {
    Rx& rx = ep.rx;
    WorkQueue& q = vi.recv;
    const uint32_t meta = meta_of(word), length = length_in(meta);
    if ((meta & (15 | (kFlagBlocks | kFlagAck | kFlagProbe) << 4)) != (kLineSend | kFlagBlocks << 4) || length == 0 ||
        read_extra(line) != length || !q.has_untaken())
        return false;
    VIP_DESCRIPTOR* d = q.next_untaken();
    const SegmentValue s = read_segment(d->DS[0].Local);
    if (!is_form_of_message(read_form(d)) || !may_receive(q.buffers, s, length)) return false;
    const std::byte* from = payload_of(ep, line, kFlagBlocks, length, read_payload<BlockPlace>(line).unit);
    if (from == nullptr) {  // it made no sense, and the connection is broken now
        rx.poll_budget = 0;
        return true;
    }
    std::memcpy(s.bytes(), from, length);
    ++q.taken;
    close_alone<Taking::alone>(ep, q, d, line, word);
    if (rx.unit_next - rx.units_published >= kPublishUnits) [[unlikely]]
        publish_consumed(ep, rx.next.load(std::memory_order_relaxed));
    return true;
}

// The lane's next line is there, and is not for the hot path, which keeps nothing for this.
[[gnu::noinline]] void take_unusual(Endpoint& ep, ViCore& vi) {
    const Rx& rx = ep.rx;
    const Line& line = line_at(rx, rx.next.load(std::memory_order_relaxed));
    const uint64_t word = line.word.load(std::memory_order_acquire);
    if (rx.poll_budget == 0 || !atomic_equals(rx.polled, 1u) ||
        !(take_short_alone<Taking::alone>(ep, vi, line, word) || take_block_alone(ep, vi, line, word)))
        take_in_general(ep);
}

// Where messages come one at a time, this takes one and leaves the line behind it alone: the sender has that line
// ready for writing. A look would fetch it from there, and no store of ours, the answer to this message among them,
// is seen by others before that look has its result. An end that is rung for messages takes all there are: it is not
// rung again for those it leaves.
[[gnu::always_inline]] inline void take_arrivals_now(Endpoint& ep, ViCore& vi) {
    Rx& rx = ep.rx;
    const uint32_t position = rx.next.load(std::memory_order_relaxed);
    const Line& line = line_at(rx, position);
    const uint64_t word = line.word.load(std::memory_order_acquire);
    if (static_cast<uint32_t>(word) != line_tag(position)) {
        if (!atomic_equals(ep.send_attention, 0u)) [[unlikely]]
            push_from_receive(ep);
        return;
    }
    if (rx.poll_budget == 0 || !atomic_equals(rx.polled, 1u) || !take_short_alone<Taking::plain>(ep, vi, line, word))
        [[unlikely]]
        take_unusual(ep, vi);
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

// Reliable Reception: the peer acknowledges a message before it answers it. What it had acknowledged when it wrote a
// line is taken before that line: a send completes before the answer to it does, as on a NIC. Another thread may be
// about to note that its send waits for the acknowledgement that is here: its lock is waited for.
template <By kBy>
[[gnu::noinline]] void collect_acks_before_line(Endpoint& ep, uint32_t placed) {
    WorkQueue& q = ep.vi->send;
    ep.rx.acks_collected = placed;
    if constexpr (kBy == By::application) q.lock.lock();  // the others hold it
    if (!ep.tx.stopped) collect_acks(ep);
    if constexpr (kBy == By::application) q.lock.unlock();
}

// In a thread of the library, and at the end, each line takes the slow path.
template <By kBy>
bool take_lines_by(Endpoint& ep, uint32_t budget) {
    constexpr bool kServing = kBy != By::application;
    Rx& rx = ep.rx;
    if (takes_no_more<kBy>(ep)) [[unlikely]]
        return false;
    const Line* const lines = rx.lines.load(std::memory_order_relaxed);
    uint32_t next = rx.next.load(std::memory_order_relaxed);
    const uint32_t first = next, end = next + budget;
    if constexpr (kServing) rx.poll_budget = 0;  // it counted from where the application was
    for (;;) {
        const Line& line = lines[next & (kLines - 1)];
        const uint64_t word = line.word.load(std::memory_order_acquire);
        if (static_cast<uint32_t>(word) != line_tag(next)) return false;
        if (next == end) [[unlikely]]
            return true;
        if (rx.acknowledged) [[unlikely]] {
            const auto placed = static_cast<uint32_t>(rx.peer->placed.load(std::memory_order_acquire));
            if (placed != rx.acks_collected) {
                collect_acks_before_line<kBy>(ep, placed);
                if (takes_no_more<kBy>(ep)) return false;
            }
        }
        bool units_used = false;
        if (kServing || !take_short_in_row(ep, line, meta_of(word))) [[unlikely]] {
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
