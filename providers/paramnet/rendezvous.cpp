// SPDX-License-Identifier: BSD-2-Clause
// Long messages: which way they take, and the way of one copy: the sender describes where its bytes lie, the
// receiver fetches them. The send completes when they have been fetched.
#include "providers/paramnet/rendezvous.hpp"

#include <algorithm>

#include "providers/paramnet/cross_copy.hpp"
#include "providers/paramnet/nic.hpp"
#include "providers/paramnet/own_memory.hpp"
#include "providers/paramnet/receive.hpp"
#include "providers/paramnet/send.hpp"

namespace viaduct::paramnet {

namespace {

// Within one process one copy beats two. Only for what does not fit into the ring anyway: a smaller send
// would have to wait for the receiver for nothing.
constexpr uint32_t kPullWithinProcess = kUnits * kUnitBytes;

// From the sender's arena. What it says of its region may be a lie, but leads nowhere outside of the mapping.
CrossResult fetch_from_arena(const Peer& peer, const PullRequest& where, SegmentCursor& to, uint32_t total,
                             bool asked) {
    Region region;
    if (!peer.regions.snapshot(where.handle, &region)) return CrossResult::fault;
    const std::byte* from = peer.arena.find(region, where.address, total);
    const auto scatter_to = asked ? scatter_accessible : scatter;
    return from != nullptr && scatter_to(to, from, total) == total ? CrossResult::ok : CrossResult::fault;
}

// `asked`: neither end's memory is taken for granted, the kernel checks it.
CrossResult fetch(const Peer& peer, const EndRecord& its_end, const PullRequest& where, SegmentCursor& to,
                  uint32_t total, bool asked) {
    if (where.handle != 0) return fetch_from_arena(peer, where, to, total, asked);
    const uint64_t address = where.address;
    static constexpr std::atomic<uint32_t> kAnyRegion{0};  // it has named its own memory
    if (peer.no_reads.load(std::memory_order_relaxed)) return CrossResult::forbidden;
    if (peer.reach == Reach::cross_copy)
        return cross_read(peer.pid, to, address, total,
                          Guard{&its_end.closed, &kAnyRegion, 0, peer.life, &peer.owner->life});
    if (peer.reach != Reach::same_process) return CrossResult::fault;
    const auto* from = reinterpret_cast<const std::byte*>(address);
    if (asked && !can_read(from, total)) return CrossResult::fault;
    const auto scatter_to = asked ? scatter_accessible : scatter;
    return scatter_to(to, from, total) == total ? CrossResult::ok : CrossResult::fault;
}

// What the receiver copies straight out of the arena.
bool lies_in_mapped_arena(const Endpoint& ep, uint32_t handle) {
    Region region;
    return ep.tx.peer->maps_arena.load(std::memory_order_relaxed) != 0 && ep.vi->regions->snapshot(handle, &region) &&
           region.arena == kArena;
}

Step begin_pull(Endpoint& ep, VIP_DESCRIPTOR* d, uint32_t total, bool from_arena, uint32_t trial) {
    Tx& tx = ep.tx;
    if (!reserve_line(ep)) return tx.stopped ? Step::stopped : Step::waits;
    Line& line = next_line(ep);
    const SegmentValue s = read_segment(d->DS[0].Local);
    const PullRequest where{s.address, from_arena ? s.handle : 0};
    __builtin_memcpy(line.payload, &where, sizeof where);
    line.immediate = d->CS.ImmediateData;
    line.extra = total;
    ++tx.used;
    const uint32_t position = ep.vi->send.taken++;
    finish_on_ack(ep, position, VIP_STATUS_OP_SEND, total);
    tx.outstanding[position & ep.vi->send.mask].fetched = !from_arena;
    uint32_t flags = kFlagAck | ((d->CS.Control & VIP_CONTROL_IMMEDIATE) != 0 ? kFlagImmediate : 0);
    int64_t begun = 0;
    if (trial != 0) flags |= mark_probe(line, kProbeMethod, trial, &begun);
    publish_line(ep, kLinePull, flags, 0);
    return Step::done;
}

// The receiver says what it can; what is set at this end counts where it leaves the choice.
uint32_t pull_limit(const Endpoint& ep) {
    const uint32_t limit = ep.tx.peer->pull_from.load(std::memory_order_relaxed);
    const int64_t own = ep.nic->settings.pull_from;
    return limit == kLearnt && own >= 0 ? static_cast<uint32_t>(own) : limit;
}

}  // namespace

uint32_t pull_threshold(const NicContext& nic, const Peer& peer) {
    if (peer.reach == Reach::none || peer.no_reads.load(std::memory_order_relaxed)) return 0;
    if (nic.settings.pull_from >= 0) return static_cast<uint32_t>(nic.settings.pull_from);
    return peer.reach == Reach::same_process ? kPullWithinProcess : kLearnt;
}

void install_method_tuner(Endpoint& ep) { install_method_tuner(ep, pull_limit(ep)); }

void install_method_tuner(Endpoint& ep, uint32_t pull_from) {
    const MethodTuner::Limits limits{ep.nic->settings.stream_from, pull_from, ep.nic->settings.trials};
    ep.tx.learnt.methods = MethodTuner(limits);
    ep.tx.learnt.long_from = std::min(limits.stream_from, limits.pull_from != 0 ? limits.pull_from : UINT32_MAX);
}

Step begin_long(Endpoint& ep, VIP_DESCRIPTOR* d, uint32_t flags, uint32_t total) {
    Tx& tx = ep.tx;
    const bool one_piece = d->CS.SegCount == 1;
    if (one_piece && total >= kArenaPullFrom && lies_in_mapped_arena(ep, d->DS[0].Local.Handle))
        return begin_pull(ep, d, total, true, 0);
    if (!reserve_line(ep)) return tx.stopped ? Step::stopped : Step::waits;  // asked about once only
    if (tx.learnt.methods.trial().open()) read_probe_result(ep);
    if (ep.left_waiting.load(std::memory_order_relaxed)) [[unlikely]] {
        ep.left_waiting.store(false, std::memory_order_relaxed);
        tx.learnt.methods.not_fetched(tx.acks.seen);
    }
    const MethodTuner::Choice choice =
        tx.learnt.methods.next(total, one_piece, tx.blocks.steady, &tx.learnt.last_trial);
    if (choice.method == Method::pull) return begin_pull(ep, d, total, false, choice.trial);
    begin_message(ep, d, kLineSend, flags, total);
    tx.message.streaming = choice.method == Method::streaming;
    tx.message.trial = choice.trial;
    return Step::done;
}

bool goes_in_one_piece(Endpoint& ep, uint32_t handle, uint32_t length) {
    Tx& tx = ep.tx;
    if (length < kArenaPullFrom) return true;
    return length <= tx.blocks.longest && !ep.left_waiting.load(std::memory_order_relaxed) &&
           !lies_in_mapped_arena(ep, handle) && tx.learnt.methods.stays_plain(length);
}

bool take_pull(Endpoint& ep, const Line& line, uint32_t meta) {
    Rx& rx = ep.rx;
    if (rx.relay.active) return take_relayed(ep);
    const PullRequest where = read_payload<PullRequest>(line);
    const uint32_t total = read_extra(line), immediate = line.immediate;
    const uint32_t flags = flags_in(meta);
    const ProbeMark mark = (flags & kFlagProbe) != 0 ? take_probe_mark(ep, line) : ProbeMark{};
    if (rx.message.kind != IncomingMessage::none || total > ep.vi->max_transfer) return protocol_violation(ep);
    if (!open_receive(ep, total)) {
        if (ep.vi->is_marked_broken()) return false;
        acknowledge(ep);  // unreliable: dropped, the sender is done with it
        return true;
    }
    // The sender's disconnect waits while we are busy, or we see that it has left.
    rx.own->busy_recv.store(where.handle != 0 ? where.handle : kBusySomewhere, std::memory_order_relaxed);
    light_barrier();
    // region_removed makes a heavy barrier for memory of the arena only.
    if (where.handle == 0 || rx.peer->needs_fence.load(std::memory_order_relaxed) != 0)
        std::atomic_thread_fence(std::memory_order_seq_cst);
    const SegmentCursor begun = rx.message.cursor;
    CrossResult result = CrossResult::ended;
    if (rx.peer->closed.load(std::memory_order_acquire) == 0)
        result = fetch(*ep.joint.peer, *rx.peer, where, rx.message.cursor, total, ep.servicing);
    rx.own->busy_recv.store(0, std::memory_order_release);
    if (result == CrossResult::forbidden && !ep.joint.peer->has_ended()) {
        forbid(*ep.joint.peer, ep.joint.peer->no_reads);
        rx.message.cursor = begun;
        return begin_relay(ep, total, flags, immediate);
    }
    // The sender hands over what only it may touch.
    if (result == CrossResult::unreached && !ep.joint.peer->has_ended() && all_writable(begun, total)) {
        rx.message.cursor = begun;
        return begin_relay(ep, total, flags, immediate);
    }
    if (result != CrossResult::ok) {
        // The sender has left, or its memory has: this message is lost, and with it the connection. The
        // receive is flushed when that is settled.
        break_by_line(ep, VIP_ERROR_CONN_LOST, true);
        return false;
    }
    if ((flags & kFlagProbe) != 0) publish_probe_result(ep, mark);
    close_receive(ep, VIP_STATUS_OP_RECEIVE, flags, immediate, total);
    return true;
}

}  // namespace viaduct::paramnet
