// SPDX-License-Identifier: BSD-2-Clause
// A message that its receiver was to fetch out of the sender's memory, and the system lets it do so no more
// (a seccomp filter, a change of user, PR_SET_DUMPABLE): the receiver asks for one piece after the other, and
// the sender's progress thread puts each into memory that both share. The receiver takes nothing behind that
// message meanwhile. Those that follow go through the ring.
#include <algorithm>

#include "providers/paramnet/nic.hpp"
#include "providers/paramnet/own_memory.hpp"
#include "providers/paramnet/receive.hpp"
#include "providers/paramnet/rendezvous.hpp"

namespace viaduct::paramnet {

namespace {

void ask(Endpoint& ep) {
    Rx& rx = ep.rx;
    rx.relay.asked = rx.own->relay_wanted.load(std::memory_order_relaxed) + 1;
    rx.own->relay_wanted.store(rx.relay.asked, std::memory_order_release);
    call_peer(ep);
}

// The oldest message that waits to be fetched.
const Outstanding* awaited_message(const Endpoint& ep, uint32_t* position) {
    const WorkQueue& q = ep.vi->send;
    for (uint32_t at = q.completed; at != q.taken; ++at) {
        const Outstanding& o = ep.tx.outstanding[at & q.mask];
        const bool waits = static_cast<int32_t>(o.ack_at - ep.tx.acks.seen) > 0;
        if (o.state != Outstanding::waits_for_ack || !o.fetched || !waits) continue;
        *position = at;
        return &o;
    }
    return nullptr;
}

}  // namespace

bool begin_relay(Endpoint& ep, uint32_t total, uint32_t flags, uint32_t immediate) {
    ep.rx.own->pull_from.store(0, std::memory_order_relaxed);
    ep.rx.relay = IncomingRelay{true, 0, total, flags, immediate};
    ask(ep);
    return false;
}

bool take_relayed(Endpoint& ep) {
    Rx& rx = ep.rx;
    IncomingRelay& relay = rx.relay;
    SegmentCursor& to = rx.message.cursor;
    if (rx.peer->relay_handed.load(std::memory_order_acquire) != relay.asked) return false;
    const uint32_t n = std::min(to.remaining, kRelayBytes);
    const std::byte* from = ep.joint.shared()->relay[1 - ep.joint.side];
    const auto scatter_to = ep.servicing ? scatter_accessible : scatter;
    if (scatter_to(to, from, n) != n) {
        break_by_line(ep, VIP_ERROR_CONN_LOST, true);
        return false;
    }
    if (to.remaining != 0) {
        ask(ep);
        return false;
    }
    relay.active = false;
    close_receive(ep, VIP_STATUS_OP_RECEIVE, relay.flags, relay.immediate, relay.total);
    return true;
}

bool relay_is_asked_for(const Endpoint& ep) {
    return ep.rx.peer->relay_wanted.load(std::memory_order_acquire) !=
           ep.rx.own->relay_handed.load(std::memory_order_relaxed);
}

void hand_over(Endpoint& ep) {
    Tx& tx = ep.tx;
    const uint32_t wanted = tx.peer->relay_wanted.load(std::memory_order_acquire);
    uint32_t position = 0;
    const Outstanding* message = awaited_message(ep, &position);
    if (message == nullptr)
        return tx.own->relay_handed.store(wanted, std::memory_order_relaxed);  // no correct peer asks
    if (tx.relay.ack_at != message->ack_at || tx.relay.done >= message->length) {
        tx.relay = OutgoingRelay{message->ack_at, 0};
        install_method_tuner(ep, 0);
    }
    const uint32_t n = std::min(message->length - tx.relay.done, kRelayBytes);
    const auto* d = reinterpret_cast<const VIP_DESCRIPTOR*>(ep.vi->send.slots[position & ep.vi->send.mask]);
    const SegmentValue s = read_segment(d->DS[0].Local);
    std::byte* to = ep.joint.shared()->relay[ep.joint.side];
    if (s.length < message->length ||
        ep.vi->regions->check(s.handle, s.address, message->length, ep.vi->ptag) != RegionCheck::ok ||
        !read_if_accessible(to, s.bytes() + tx.relay.done, n))
        return break_connection(ep, VIP_ERROR_CONN_LOST, true,
                                CauseKind::changed_or_unmapped);  // the program has taken it away under the send
    tx.relay.done += n;
    tx.own->relay_handed.store(wanted, std::memory_order_release);
    ring_peer(ep);
}

}  // namespace viaduct::paramnet
