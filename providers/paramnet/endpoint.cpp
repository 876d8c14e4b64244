// SPDX-License-Identifier: BSD-2-Clause
// Life of an endpoint: made, bound to a peer, started, disconnected, destroyed.
#include "providers/paramnet/endpoint.hpp"

#include <sched.h>
#include <time.h>

#include <new>

#include "core/clock/clock.hpp"
#include "core/log/log.hpp"
#include "core/sync/pause.hpp"
#include "providers/paramnet/doorbells.hpp"
#include "providers/paramnet/group.hpp"
#include "providers/paramnet/hub.hpp"
#include "providers/paramnet/nic.hpp"
#include "providers/paramnet/progress.hpp"
#include "providers/paramnet/receive.hpp"
#include "providers/paramnet/rendezvous.hpp"
#include "providers/paramnet/send.hpp"
#include "providers/paramnet/told_cause.hpp"

namespace viaduct::paramnet {

const Line kSilentLane[kLines] = {};

namespace {

// The peer has no access to memory of ours under way. Our `closed` is visible to it already.
void wait_until_idle(const EndRecord& its_end, Peer& peer) {
    if (!is_busy(its_end)) return;
    const Deadline deadline = now_ns() + longest_wait(peer);
    for (int spins = 0; is_busy(its_end) && peer.dead.load(std::memory_order_acquire) == 0; ++spins) {
        if (spins < 1000) {
            cpu_pause();
            continue;
        }
        ::sched_yield();
        if (now_ns() > deadline) {
            peer.exceeded_wait.store(1, std::memory_order_relaxed);
            VIADUCT_LOG(warn, "paramnet", "a peer does not leave our memory: going on without it");
            return;
        }
    }
}

// Tells the other end that we have left. Both queue locks held, or no thread uses the joint yet.
void announce_close(const Joint& joint) {
    joint.shared()->ends[joint.side].closed.store(1, std::memory_order_seq_cst);
    call(joint.peer->hub_view(), joint.shared()->ends[joint.side], joint.peer_slot);
}

void drop(Joint& joint) {
    joint.segment.reset();
    release_peer(joint.peer);
    joint.peer = nullptr;
}

bool lets_peer_touch_memory(const ViCore& vi) {
    return vi.traits.rdma_write != 0 || vi.traits.rdma_read != 0;
}

void install_receiver(Endpoint& ep) {
    ViCore& vi = *ep.vi;
    ConnectionSegment& shared = *ep.joint.shared();
    const uint32_t side = ep.joint.side;
    Rx& rx = ep.rx;
    rx.poll_budget = rx.published = rx.unit_next = rx.units_published = rx.acks = rx.acks_collected = 0;
    rx.message = IncomingMessage();
    rx.relay = IncomingRelay();
    rx.ended = false;
    rx.base = vi.recv.completed;  // receives posted before connecting count too
    rx.acknowledged = vi.traits.reliability == VIP_SERVICE_RELIABLE_RECEPTION;
    rx.unreliable = vi.traits.reliability == VIP_SERVICE_UNRELIABLE;
    rx.blocks = shared.blocks[1 - side];
    rx.own = &shared.ends[side];
    rx.peer = &shared.ends[1 - side];
    rx.next.store(0, std::memory_order_relaxed);
    rx.lines.store(shared.lines[1 - side], std::memory_order_release);
    for (auto& seen : ep.events_seen) seen.store(0, std::memory_order_relaxed);
    ep.link_down_seen.store(0, std::memory_order_relaxed);
}

void install_sender(Endpoint& ep) {
    ViCore& vi = *ep.vi;
    ConnectionSegment& shared = *ep.joint.shared();
    const uint32_t side = ep.joint.side;
    std::unique_ptr<Outstanding[]> outstanding = std::move(ep.tx.outstanding);
    ep.tx = Tx();
    Tx& tx = ep.tx;
    tx.outstanding = std::move(outstanding);
    tx.acknowledged = vi.traits.reliability == VIP_SERVICE_RELIABLE_RECEPTION;
    tx.small_limit = vi.max_transfer < kInlineBytes ? static_cast<uint32_t>(vi.max_transfer) : kInlineBytes;
    tx.small_meta = make_meta(kLineSend, tx.acknowledged ? kFlagAck : 0, 0);
    tx.limit = kLines;
    tx.blocks.longest = ep.nic->settings.block_bytes;
    tx.learnt.answered = tx.learnt.in_row = PrefetchTuner(ep.nic->settings.trials);
    tx.network.paced = ep.nic->settings.link.active();
    tx.network.stamped = vi.send.posted;
    ep.arrives_at.store(0, std::memory_order_relaxed);
    if (ep.nic->settings.faults.active())
        tx.network.faults.reset(new (std::nothrow) FaultModel(ep.nic->settings.faults));
    ep.peer_posted.store(0, std::memory_order_relaxed);
    ep.left_waiting.store(false, std::memory_order_relaxed);
    tx.lines = shared.lines[side];
    tx.blocks.at = shared.blocks[side];
    tx.own = &shared.ends[side];
    tx.peer = &shared.ends[1 - side];
}

}  // namespace

Status endpoint_create(NicContext* nic, const EndpointArgs& args, Endpoint** out) {
    const uint32_t slot = args.vi->slot;
    if (slot >= kMaxVi) return Status::out_of_resources;
    std::unique_ptr<Endpoint> ep(new (std::nothrow) Endpoint);
    if (!ep) return Status::out_of_resources;
    ep->tx.outstanding.reset(new (std::nothrow) Outstanding[args.vi->send.depth()]);
    if (!ep->tx.outstanding) return Status::out_of_resources;
    ep->vi = args.vi;
    ep->nic = nic;
    ep->send_group = args.send_group;
    ep->recv_group = args.recv_group;
    ep->slot = slot;
    ep->rx.lines.store(kSilentLane, std::memory_order_relaxed);
    nic->slots_lock.lock();
    const bool free = nic->slots[slot] == nullptr;
    if (free) {
        nic->slots[slot] = ep.get();
        if (slot >= nic->slots_end) nic->slots_end = slot + 1;
    }
    nic->slots_lock.unlock();
    if (!free) return Status::invalid;
    *out = ep.release();
    return Status::ok;
}

void endpoint_destroy(Endpoint* ep) {
    NicContext& nic = *ep->nic;
    nic.slots_lock.lock();
    nic.slots[ep->slot] = nullptr;
    while (ep->pins != 0) {
        nic.slots_lock.unlock();
        ::sched_yield();
        nic.slots_lock.lock();
    }
    nic.slots_lock.unlock();
    leave_groups(*ep);
    if (ep->joint.valid()) {  // bound, never started
        announce_close(ep->joint);
        drop(ep->joint);
    }
    reap(*ep);
    delete ep;
}

void bind(Endpoint& ep, Joint&& joint) {
    reap(ep);
    if (ep.joint.valid()) drop(ep.joint);
    ep.joint = std::move(joint);
}

void start(ViCore& vi) {
    Endpoint& ep = *vi.endpoint;
    if (!ep.joint.valid() || ep.connected) return;
    install_receiver(ep);
    install_sender(ep);
    NicContext& nic = *ep.nic;
    nic.slots_lock.lock();
    ep.connected = true;
    write_modes(nic, ep);
    nic.slots_lock.unlock();
    if (lets_peer_touch_memory(vi)) nic.rdma_targets.fetch_add(1, std::memory_order_relaxed);

    kick_recv(vi);            // publishes the receives and that we have started
    ring_peer(ep);            // it may hold back sends until now
    // Rings and calls of before this moment met a silent lane, and their marks are to be set anew.
    EndRecord& other_end = ep.joint.shared()->ends[1 - ep.joint.side];
    take_mark(other_end.rung);
    take_mark(other_end.called);
    request_poll(ep);
    call_own(nic, ep.slot);  // the peer may have connected and left
}

Status finish_traffic(ViCore& vi) {
    Endpoint& ep = *vi.endpoint;
    if (!ep.connected) return Status::ok;
    // Read first: what the peer published before it left is in the lane then.
    const bool left = ep.rx.peer->closed.load(std::memory_order_acquire) != 0 ||
                      ep.joint.peer->has_ended();
    ep.servicing = true;  // both locks are held
    take_last_lines(ep);
    if (!ep.tx.stopped) collect_acks(ep);
    if (!left && !vi.is_marked_broken()) push_sends(ep);
    ep.servicing = false;
    const bool over = left || ep.tx.stopped || vi.is_marked_broken();
    return over || vi.send.completed == vi.send.posted ? Status::ok : Status::not_done;
}

void disconnect(ViCore& vi) {
    Endpoint& ep = *vi.endpoint;
    NicContext& nic = *ep.nic;
    if (!ep.joint.valid()) return;
    if (ep.connected) tell_own_cause(ep);
    announce_close(ep.joint);
    if (ep.connected) {
        heavy_barrier();  // an end that is not busy now sees that this end has left
        wait_until_idle(*ep.rx.peer, *ep.joint.peer);
        IncomingMessage& m = ep.rx.message;
        if (m.kind == IncomingMessage::into_receive) {  // spec/states 3 rule 3
            m.kind = IncomingMessage::none;
            complete_head(vi.recv,
                          VIP_STATUS_OP_RECEIVE | VIP_STATUS_PARTIAL_ERROR | VIP_STATUS_DESC_FLUSHED_ERROR,
                          m.total - m.remaining);
        }
        if (lets_peer_touch_memory(vi)) nic.rdma_targets.fetch_sub(1, std::memory_order_relaxed);
        if (ep.tx.backlog) nic.backlogs.fetch_sub(1, std::memory_order_relaxed);
        ep.tx.backlog = false;
        ep.tx.fast = false;
        ep.tx.burst_credit = 0;
        ep.tx.stopped = true;
        ep.send_attention.store(0, std::memory_order_relaxed);
        ep.awaits_acks.store(0, std::memory_order_relaxed);
        ep.rx.lines.store(kSilentLane, std::memory_order_relaxed);
        ep.rx.next.store(0, std::memory_order_relaxed);
    }
    nic.slots_lock.lock();
    ep.connected = false;
    ep.recv_hot.store(false, std::memory_order_relaxed);
    ep.send_hot.store(false, std::memory_order_relaxed);
    ep.retired = std::move(ep.joint);  // bind() has dropped the one before
    ep.joint.peer = nullptr;
    nic.slots_lock.unlock();
    nic.retired.fetch_add(1, std::memory_order_relaxed);
    wake_progress(nic);  // frees the segment when no poller can be looking at it any more
}

void reap(Endpoint& ep) {
    NicContext& nic = *ep.nic;
    Joint joint;
    nic.slots_lock.lock();
    std::swap(joint, ep.retired);
    nic.slots_lock.unlock();
    if (!joint.valid()) return;
    // A poller that read the lane's address before it was replaced holds its group's lock.
    for (Group* group : {ep.recv_group, ep.send_group}) {
        if (group == nullptr) continue;
        group->lock.lock();
        group->lock.unlock();
    }
    drop(joint);
}

void update_fast(Endpoint& ep) {
    Tx& tx = ep.tx;
    tx.burst_credit = 0;
    tx.fast = ep.connected && tx.peer_started && !tx.stopped && !tx.backlog && !tx.network.link_down &&
              !tx.needs_fence && asymmetric_barrier_available() && !tx.network.faults && !tx.network.paced &&
              !tx.rdma.read.active;
}

void update_attention(Endpoint& ep) {
    ep.send_attention.store(ep.tx.backlog || ep.tx.rdma.read.active ? 1 : 0, std::memory_order_relaxed);
}

void break_connection(Endpoint& ep, VIP_ERROR_CODE code, bool report, VIP_ULONG opcode, const Cause& cause,
                      bool told_by_peer) {
    ep.vi->mark_broken(BreakReason{code, VIP_RESOURCE_VI, opcode, nullptr, report, cause, told_by_peer});
}

void break_connection(Endpoint& ep, VIP_ERROR_CODE code, bool report, CauseKind kind) {
    Cause cause;
    cause.kind = kind;
    break_connection(ep, code, report, 0, cause);
}

void ring_peer(const Endpoint& ep) { ring(ep.joint.peer->hub_view(), *ep.rx.own, ep.joint.peer_slot); }

void call_peer(const Endpoint& ep) { call(ep.joint.peer->hub_view(), *ep.rx.own, ep.joint.peer_slot); }

void request_poll(const Endpoint& ep) { request_poll_of(*ep.nic, ep.slot); }

Status set_fault_plan(ViCore& vi, const char* plan) {
    FaultPlan parsed;
    if (!parse_fault_plan(plan, &parsed) || parsed.reorder > 0) return Status::invalid;  // nothing overtakes
    Endpoint& ep = *vi.endpoint;
    std::unique_ptr<FaultModel> model;
    if (parsed.active()) {
        model.reset(new (std::nothrow) FaultModel(parsed));
        if (!model) return Status::out_of_resources;
    }
    vi.send.lock.lock();
    const bool connected = ep.connected;
    if (connected) {
        ep.tx.network.faults = std::move(model);
        ep.tx.own->link_down.store(parsed.link_down ? 1 : 0, std::memory_order_release);
        update_fast(ep);
        call_peer(ep);  // a link that is down is down for both ends
    }
    vi.send.lock.unlock();
    return connected ? Status::ok : Status::invalid_state;
}

}  // namespace viaduct::paramnet
