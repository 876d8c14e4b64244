// SPDX-License-Identifier: BSD-2-Clause
// RDMA by the initiator alone: it checks the target's permissions as the target's NIC would, and copies: into
// memory of the target's arena by plain stores, else by a cross-process copy. rdma_direct.cpp has the fast path of
// writes; where the target's memory cannot be reached, rdma_served.cpp does it with the target's help.
#include "providers/paramnet/rdma.hpp"
#include "providers/paramnet/change_word.hpp"
#include "providers/paramnet/cross_copy.hpp"
#include "providers/paramnet/nic.hpp"
#include "providers/paramnet/own_memory.hpp"
#include "providers/paramnet/progress.hpp"
#include "providers/paramnet/send.hpp"
#include "providers/paramnet/told_cause.hpp"

namespace viaduct::paramnet {

namespace {

// Announces that we touch the target's memory; it waits for the end of that before it gives memory back.
// False: the target has left, do not touch.
class Access {
public:
    // Pairs with the heavy barrier of disconnect. What may lie outside of the arena is taken back without one
    // (region_removed): before it is touched there is a fence, which is little beside the system call.
    Access(Endpoint& ep, uint32_t handle) : own_(*ep.tx.own), peer_(*ep.tx.peer) {
        own_.busy_send.store(handle, std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_seq_cst);
    }
    ~Access() { own_.busy_send.store(0, std::memory_order_release); }
    Access(const Access&) = delete;
    Access& operator=(const Access&) = delete;
    bool open() const { return peer_.closed.load(std::memory_order_acquire) == 0; }
    // For a region that has been looked at: its handle is one that can be live.
    Guard guard(const Peer& peer, uint32_t handle) const {
        return {&peer_.closed, peer.regions.live_word(handle), handle, peer.life, &peer.owner->life};
    }

private:
    EndRecord& own_;
    const EndRecord& peer_;
};

// spec/reliability 7: VI enables, region enables, tags, range.
bool permitted(const Endpoint& ep, uint32_t handle, uint64_t address, uint64_t length, uint32_t vi_permission,
               uint32_t region_flag, Region* out) {
    const EndRecord& peer = *ep.tx.peer;
    if ((peer.permission.load(std::memory_order_relaxed) & vi_permission) == 0) return false;
    if (length == 0) return true;
    Region& region = *out;
    if (!ep.joint.peer->regions.snapshot(handle, &region)) return false;
    return (region.flags & region_flag) != 0 &&
           ptags_agree(region.ptag, peer.ptag.load(std::memory_order_relaxed)) && length <= region.length &&
           address - region.base <= region.length - length;
}

// Within this process, by plain copies.
CrossResult write_here(SegmentCursor& from, uint64_t address, uint32_t total) {
    uint32_t n = 0;
    for (uint32_t done = 0; done < total; done += n) {
        const std::byte* piece = from.next(total - done, &n);
        if (piece == nullptr) return CrossResult::fault;
        copy_rising(reinterpret_cast<std::byte*>(address + done), piece, n);
    }
    return CrossResult::ok;
}

CrossResult read_here(SegmentCursor& to, uint64_t address, uint32_t total) {
    return scatter(to, reinterpret_cast<const std::byte*>(address), total) == total ? CrossResult::ok
                                                                                    : CrossResult::fault;
}

// Where the peer's memory can be touched from here by plain copies; 0: nowhere. A region is looked up only
// where there is an arena.
uint64_t direct_address(const Peer& peer, const Region& region, uint64_t address, uint32_t total) {
    if (peer.reach == Reach::same_process) return address;
    return reinterpret_cast<uintptr_t>(peer.arena.find(region, address, total));
}

// False: the target has to help. `directly`: the system lets us.
bool in_reach(const Peer& peer, uint32_t handle, bool directly) {
    if (peer.reach != Reach::none && directly) return true;
    Region region;
    return peer.arena.valid() && peer.regions.snapshot(handle, &region) && region.arena == kArena;
}

bool may_write(const Peer& peer) { return !peer.no_writes.load(std::memory_order_relaxed); }

// A read sees what was written before it: where writes go through the lane, so do reads.
bool may_read(const Peer& peer) { return may_write(peer) && !peer.no_reads.load(std::memory_order_relaxed); }

// From now on all RDMA of this connection goes through the lane, so that it stays in its order: what is written into
// the arena from here would overtake what the target still has to place.
void ask_for_help(Tx& tx) {
    if (tx.rdma.asks_help) return;
    tx.rdma.asks_help = true;
    tx.rdma.target.region.clear();
}

// Remembers the target region of a write that went directly, for write_direct() and write_now().
void remember_target(Endpoint& ep, uint32_t handle, uint64_t address, uint32_t total) {
    const Peer& peer = *ep.joint.peer;
    RemoteTarget& target = ep.tx.rdma.target;
    if (target.region.covers(handle, address, total)) return;
    target.region.clear();
    RegionCache fresh;
    Region region;
    if (peer.regions.check_and_remember(fresh, handle, address, total,
                                        ep.tx.peer->ptag.load(std::memory_order_relaxed)) !=
            RegionCheck::ok ||
        !peer.regions.snapshot(handle, &region) || (region.flags & kRegionRdmaWrite) == 0 ||
        region.base != fresh.base || region.length != fresh.length || !fresh.covers(handle, address, total))
        return;  // it has changed in between
    target.at = peer.arena.find(region, region.base, region.length);
    if (target.at != nullptr) target.region = fresh;
}

// With immediate data the write also takes a receive, and its line must have a place.
Step reserve_immediate(Endpoint& ep, uint32_t total) {
    const Step receive = reserve_receive(ep);
    if (receive == Step::stopped) {
        finish_without_receive(ep, ep.vi->send.taken++, VIP_STATUS_OP_RDMA_WRITE, total);
        return Step::stopped;
    }
    if (receive == Step::waits) return Step::waits;
    if (reserve_line(ep)) return Step::done;
    return Step::waits;
}

void publish_immediate(Endpoint& ep, uint32_t operation, uint32_t immediate, uint32_t total) {
    Line& line = next_line(ep);
    line.immediate = immediate;
    line.extra = total;
    ++ep.tx.used;
    publish_line(ep, operation, kFlagImmediate | (ep.tx.acknowledged ? kFlagAck : 0), 0);
}

// Both ends are told why; at an unreliable level no descriptor reports it.
void note_refused(Endpoint& ep, const VIP_DESCRIPTOR* d, uint64_t length) {
    if (!reliable(ep)) return;
    const Cause cause = explain_target(ep, d, length);
    ep.vi->cause_of(ep.vi->send).cause = cause;
    tell_cause(ep, cause);
}

}  // namespace

Step begin_write(Endpoint& ep, VIP_DESCRIPTOR* d, uint32_t total) {
    Tx& tx = ep.tx;
    Peer& peer = *ep.joint.peer;
    const bool immediate = (d->CS.Control & VIP_CONTROL_IMMEDIATE) != 0;
    if (immediate) {
        const Step step = reserve_immediate(ep, total);
        if (step == Step::stopped) return Step::done;  // decided
        if (step == Step::waits) return tx.stopped ? Step::stopped : Step::waits;
    }
    const uint32_t handle = d->DS[0].Remote.Handle;
    const uint64_t address = d->DS[0].Remote.Data.AddressBits;
    if (tx.rdma.asks_help || !in_reach(peer, handle, may_write(peer))) {
        ask_for_help(tx);
        return begin_served_write(ep, d, total);
    }

    CrossResult result = CrossResult::fault;
    {
        const Access access(ep, handle);
        if (!access.open()) return Step::waits;  // its disconnect is on the way
        Region region;
        if (permitted(ep, handle, address, total, kMayWrite, kRegionRdmaWrite, &region)) {
            SegmentCursor from;
            from.begin(d, total, ep.vi->regions, ep.vi->ptag);
            if (total == 0) {
                result = CrossResult::ok;
            } else if (const uint64_t here = direct_address(peer, region, address, total); here != 0) {
                result = write_here(from, here, total);
                if (result == CrossResult::ok && here != address) remember_target(ep, handle, address, total);
            } else if (peer.reach == Reach::cross_copy) {
                const SegmentCursor begun = from;
                result = cross_write(peer.pid, from, address, total, access.guard(peer, handle));
                if (result == CrossResult::unreached && !all_readable(begun, total))
                    result = CrossResult::fault;
            }
        }
        if (!access.open()) return Step::waits;
    }
    if (result != CrossResult::ok && peer.has_ended()) result = CrossResult::ended;
    if (result == CrossResult::ended) {
        report_death(*ep.nic);
        return Step::waits;
    }
    if (result == CrossResult::unreached) {
        ask_for_help(tx);
        return begin_served_write(ep, d, total);
    }
    if (result == CrossResult::forbidden) {
        forbid(peer, peer.no_writes);
        ask_for_help(tx);
        return begin_served_write(ep, d, total);
    }
    const uint32_t position = ep.vi->send.taken++;
    if (result == CrossResult::fault) {
        note_refused(ep, d, total);
        if (immediate) publish_immediate(ep, kLineWriteRefused, d->CS.ImmediateData, 0);
        finish_refused_write(ep, position, total, immediate);
        return Step::done;
    }
    if (!immediate) {
        finish(ep, position, VIP_STATUS_OP_RDMA_WRITE, total, After::nothing);
        return Step::done;
    }
    publish_immediate(ep, kLineImmediate, d->CS.ImmediateData, total);
    if (tx.acknowledged) {
        finish_on_ack(ep, position, VIP_STATUS_OP_RDMA_WRITE, total);
    } else {
        finish(ep, position, VIP_STATUS_OP_RDMA_WRITE, total, After::nothing);
    }
    return Step::done;
}

Status mapped_at(ViCore& vi, uint32_t handle, uint64_t address, uint64_t bytes, void** here) {
    Endpoint& ep = *vi.endpoint;
    if (!ep.connected || bytes == 0) return Status::not_done;
    const Access access(ep, handle);
    Region region;
    if (!access.open() || !permitted(ep, handle, address, bytes, kMayWrite, kRegionRdmaWrite, &region))
        return Status::not_done;
    *here = ep.joint.peer->arena.find(region, address, bytes);
    return *here != nullptr ? Status::ok : Status::not_done;
}

Step begin_read(Endpoint& ep, VIP_DESCRIPTOR* d, uint32_t total) {
    Peer& peer = *ep.joint.peer;
    const uint32_t handle = d->DS[0].Remote.Handle;
    const uint64_t address = d->DS[0].Remote.Data.AddressBits;
    if (ep.tx.rdma.asks_help || !in_reach(peer, handle, may_read(peer))) {
        ask_for_help(ep.tx);
        return begin_served_read(ep, d, total);
    }
    CrossResult result = CrossResult::fault;
    {
        const Access access(ep, handle);
        if (!access.open()) return Step::waits;
        Region region;
        if (permitted(ep, handle, address, total, kMayRead, kRegionRdmaRead, &region)) {
            SegmentCursor to;
            to.begin(d, total, ep.vi->regions, ep.vi->ptag);
            if (total == 0) {
                result = CrossResult::ok;
            } else if (const uint64_t here = direct_address(peer, region, address, total); here != 0) {
                result = read_here(to, here, total);
            } else if (peer.reach == Reach::cross_copy) {
                const SegmentCursor begun = to;
                result = cross_read(peer.pid, to, address, total, access.guard(peer, handle));
                if (result == CrossResult::unreached && !all_writable(begun, total))
                    result = CrossResult::fault;
            }
        }
        if (result == CrossResult::fault && !access.open()) return Step::waits;
    }
    if (result != CrossResult::ok && peer.has_ended()) result = CrossResult::ended;
    if (result == CrossResult::ended) {
        report_death(*ep.nic);
        return Step::waits;
    }
    if (result == CrossResult::unreached) {
        ask_for_help(ep.tx);
        return begin_served_read(ep, d, total);
    }
    if (result == CrossResult::forbidden) {
        forbid(peer, peer.no_reads);
        return begin_served_read(ep, d, total);
    }
    const uint32_t position = ep.vi->send.taken++;
    if (result == CrossResult::ok) {
        finish(ep, position, VIP_STATUS_OP_RDMA_READ, total, After::nothing);
        return Step::done;
    }
    note_refused(ep, d, total);
    tell_event(ep, kEventReadRefused);  // spec/reliability 6.2: reads are refused at reliable levels only
    finish(ep, position, VIP_STATUS_OP_RDMA_READ | VIP_STATUS_RDMA_PROT_ERROR, 0, After::break_silently);
    return Step::done;
}

Step begin_atomic(Endpoint& ep, VIP_DESCRIPTOR* d, uint32_t total) {
    const Peer& peer = *ep.joint.peer;
    const uint32_t control = d->CS.Control;
    const bool swaps = is_compare_swap(control);
    const uint32_t width = atomic_width(control, total);
    const uint32_t handle = d->DS[0].Remote.Handle;
    const uint64_t address = d->DS[0].Remote.Data.AddressBits;
    if (width == 0 || address % width != 0) {  // changed since it was checked
        finish(ep, ep.vi->send.taken++, kStatusAtomic | VIP_STATUS_FORMAT_ERROR, 0, After::break_silently);
        return Step::done;
    }
    const SegmentValue s = read_segment(d->DS[1].Local);
    if (s.length != total || ep.vi->regions->check(s.handle, s.address, total, ep.vi->ptag) != RegionCheck::ok ||
        (ep.servicing && !can_write(s.bytes(), total))) {
        finish(ep, ep.vi->send.taken++, kStatusAtomic | VIP_STATUS_PROTECTION_ERROR, 0, After::break_silently);
        return Step::done;
    }
    if (ep.tx.rdma.asks_help) return begin_served_atomic(ep, d, total, width);
    bool granted = false;
    uint64_t here = 0;
    {
        const Access access(ep, handle);
        if (!access.open()) return Step::waits;
        Region region;
        granted = permitted(ep, handle, address, width, kMayWrite, kRegionRdmaWrite, &region) &&
                  permitted(ep, handle, address, width, kMayRead, kRegionRdmaRead, &region);
        if (granted) here = direct_address(peer, region, address, width);
        if (here != 0) {
            width == 4 ? change_word<uint32_t>(here, s.bytes(), swaps)
                       : change_word<uint64_t>(here, s.bytes(), swaps);
        } else if (!access.open()) {
            return Step::waits;
        }
    }
    if (granted && here == 0) return begin_served_atomic(ep, d, total, width);
    const uint32_t position = ep.vi->send.taken++;
    if (granted) {
        finish(ep, position, kStatusAtomic, total, After::nothing);
        return Step::done;
    }
    note_refused(ep, d, width);
    tell_event(ep, kEventReadRefused);
    finish(ep, position, kStatusAtomic | VIP_STATUS_RDMA_PROT_ERROR, 0, After::break_silently);
    return Step::done;
}

void finish_refused_write(Endpoint& ep, uint32_t position, uint32_t total, bool told_by_line) {
    if (!told_by_line) tell_event(ep, kEventWriteRefused);
    switch (ep.vi->traits.reliability) {
        case VIP_SERVICE_UNRELIABLE:  // dropped on arrival: the initiator has sent all of it
            finish(ep, position, VIP_STATUS_OP_RDMA_WRITE, total, After::nothing);
            break;
        case VIP_SERVICE_RELIABLE_DELIVERY:  // "may already be done": the initiator sees it by losing the
                                             // connection
            finish(ep, position, VIP_STATUS_OP_RDMA_WRITE, total, After::break_lost);
            break;
        default:
            finish(ep, position, VIP_STATUS_OP_RDMA_WRITE | VIP_STATUS_RDMA_PROT_ERROR, 0,
                   After::break_silently);
            break;
    }
}

}  // namespace viaduct::paramnet
