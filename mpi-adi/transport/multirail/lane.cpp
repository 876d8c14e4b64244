// SPDX-License-Identifier: BSD-2-Clause
// One lane: packets on their way to its NIC and back. Credits are those of the via module (credits.hpp), with
// one more meaning: a credit comes back when the receiver has posted a receive anew, so it says that a packet
// is there for good.
#include <algorithm>

#include "mpi-adi/transport/adi/counters.hpp"
#include "mpi-adi/transport/multirail/rails.hpp"

namespace viaduct::rails {

namespace {

constexpr int kFirstEchoes = 8;  // had one after the other when a lane is new

uint64_t nanoseconds(Clock::time_point t) {
    return static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(t.time_since_epoch()).count());
}

}  // namespace

void Rails::hand_to_nic(Lane& lane, Packet* p) {
    const VIP_MEM_HANDLE handle = regions_[p->region].handle[lane.rail->index];
    p->lane = &lane;
    p->with_nic = true;
    ++lane.with_nic;
    ++lane.rail->with_nic;
    if (!p->write) p->desc.DS[0].Local.Handle = handle;
    if (VipPostSend(lane.vi, &p->desc, handle) == VIP_SUCCESS) [[likely]]
        return;
    p->with_nic = false;
    --lane.with_nic;
    --lane.rail->with_nic;
    suspect(lane);
    if (p->write) {
        --lane.stripes;
        --lane.rail->stripes;
        --stripes_;
        --p->transfer->writes;
    }
    if (!p->awaited) release(p);
}

// A packet of `bytes` bytes. The lane is ready for it; one that costs credit is kept until it is known to be
// there.
void Rails::post(Lane& lane, Packet* p, Kind kind, size_t bytes) {
    Header* h = packet_as<Header>(p);
    h->kind = kind;
    if (kind == Kind::noop) {
        lane.credits.sent_free();
    } else {
        lane.credits.spend();
        p->awaited = true;
        lane.awaited.push(p);
    }
    h->credit = lane.credits.take_local();
    h->view = lane.credits.view();
    h->noops = lane.credits.free_had();
    h->source = static_cast<uint32_t>(me_);
    h->sequence = p->sequence;
    p->desc.CS.SegCount = 1;
    p->desc.CS.Control = VIP_CONTROL_OP_SENDRECV;
    p->desc.CS.Reserved = 0;
    p->desc.CS.Length = static_cast<VIP_UINT32>(bytes);
    p->desc.CS.Status = 0;
    p->desc.DS[0].Local.Data.Address = p->buffer;
    p->desc.DS[0].Local.Length = static_cast<VIP_UINT32>(bytes);
    ++adi::counters[MPIP_PROTO_VIA].mc_packets;
    hand_to_nic(lane, p);
}

bool Rails::post_buffer(Lane& lane) {
    Packet* p = get_packet();
    if (p == nullptr) return false;
    const VIP_MEM_HANDLE handle = regions_[p->region].handle[lane.rail->index];
    p->lane = &lane;
    p->desc.CS.SegCount = 1;
    p->desc.CS.Control = VIP_CONTROL_OP_SENDRECV;
    p->desc.CS.Reserved = 0;
    p->desc.CS.Length = kBufferBytes;
    p->desc.CS.Status = 0;
    p->desc.DS[0].Local.Data.Address = p->buffer;
    p->desc.DS[0].Local.Handle = handle;
    p->desc.DS[0].Local.Length = kBufferBytes;
    if (VipPostRecv(lane.vi, &p->desc, handle) == VIP_SUCCESS) [[likely]]
        return true;
    release(p);
    return false;
}

bool Rails::post_receive(Lane& lane, bool reserve) {
    if (!post_buffer(lane)) return false;
    lane.credits.reposted(reserve);
    return true;
}

void Rails::post_missing_receives(Lane& lane) {
    while (lane.credits.missing_reserve() > 0) {
        if (!post_receive(lane, true)) return want_chores(lane);
    }
    while (lane.credits.missing() > 0) {
        if (!post_receive(lane, false)) return want_chores(lane);
    }
}

void Rails::want_chores(Lane& lane) {
    if (lane.chores) return;
    lane.chores = true;
    chores_.push_back(&lane);
}

void Rails::send_noop(Lane& lane) {
    if (lane.state != LaneState::up || lane.suspect) return;
    Packet* p = lane.credits.may_send_noop() && has_slot(lane) ? get_packet() : nullptr;
    if (p == nullptr) return want_chores(lane);
    ++adi::counters[MPIP_PROTO_VIA].mc_noops;
    lane.tell_soon = false;
    p->sequence = 0;
    post(lane, p, Kind::noop, sizeof(Header));
}

void Rails::send_report(Lane& lane, Kind kind) {
    const bool may = kind == Kind::hello || ready(lane);
    Packet* p = may ? get_packet() : nullptr;
    if (p == nullptr) {
        if (kind == Kind::hello) return suspect(lane);
        lane.report_due = true;
        return want_chores(lane);
    }
    lane.report_due = false;
    Report* report = packet_as<Report>(p);
    report->number = lane.number;
    for (size_t i = 0; i < kMostRails; ++i) {
        const auto& end = lane.bundle->lanes[i].own_end;
        report->ended[i].up_to = end.up_to;
        report->ended[i].number = end.number;
        report->ended[i].received = end.received;
    }
    p->sequence = 0;
    post(lane, p, kind, sizeof(Report));
}

void Rails::send_probe(Lane& lane) {
    Packet* p = ready(lane) ? get_packet() : nullptr;
    if (p == nullptr) return;
    lane.probed_at = nanoseconds(Clock::now());
    packet_as<Probe>(p)->time = lane.probed_at;
    p->sequence = 0;
    lane.probed = true;
    post(lane, p, Kind::probe, sizeof(Probe));
}

// The NIC is done with it.
void Rails::sent(Packet* p, bool good) {
    Lane& lane = *p->lane;
    p->with_nic = false;
    --lane.with_nic;
    --lane.rail->with_nic;
    if (!good) suspect(lane);
    if (p->write) {
        if (good) {
            if (lane.batch_bytes == 0) lane.batch_began = std::max(p->posted, lane.last_stripe);
            lane.batch_bytes += p->bytes;
            lane.rail->stripes_done = true;
        }
        --lane.stripes;
        --lane.rail->stripes;
        --stripes_;
        --p->transfer->writes;
        look_for_end(*p->transfer);
        release(p);
    } else if (!p->awaited) {
        release(p);
    }
}

void Rails::collect_sends(Rail& rail) {
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN receive;
    while (rail.with_nic != 0 && VipCQDone(rail.scq, &vi, &receive) == VIP_SUCCESS) {
        VIP_DESCRIPTOR* desc = nullptr;
        const VIP_RETURN rc = VipSendDone(vi, &desc);
        if (desc != nullptr) sent(packet_of(desc), rc == VIP_SUCCESS);
    }
    if (!rail.stripes_done) return;
    rail.stripes_done = false;
    const auto now = Clock::now();
    for (Bundle* bundle : bundles_) {
        if (bundle->lanes[rail.index].batch_bytes != 0) measure(bundle->lanes[rail.index], now);
    }
}

// One packet of this rail, if there is one.
int Rails::take_arrivals(Rail& rail) {
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN receive;
    return VipCQDone(rail.cq, &vi, &receive) == VIP_SUCCESS ? take_from(vi) : 0;
}

int Rails::take_from(VIP_VI_HANDLE vi) {
    VIP_DESCRIPTOR* desc = nullptr;
    const VIP_RETURN rc = VipRecvDone(vi, &desc);
    if (desc == nullptr) return 1;  // of a queue that was collected when its lane was taken out
    Packet* p = packet_of(desc);
    Lane& lane = *p->lane;
    if (rc != VIP_SUCCESS) {
        release(p);
        suspect(lane);
    } else if (!take(lane, p)) {
        fail(lane.bundle->peer, "it sent a packet that cannot be");
    }
    return 1;
}

// The peer has told of so many more packets.
void Rails::arrived_before(Lane& lane, int packets) {
    lane.told += static_cast<uint32_t>(packets);
    while (packets-- > 0) here(lane.awaited.pop());
}

// A packet that has come in on this lane; also while it is being taken out. False: it cannot be.
bool Rails::take(Lane& lane, Packet* p) {
    Bundle& bundle = *lane.bundle;
    const size_t length = p->desc.CS.Length;
    const Header* h = packet_as<Header>(p);
    if (length < sizeof(Header) || length > kBufferBytes || h->source != bundle.peer.rank || bundle.peer.lost()) {
        const bool late = bundle.peer.lost();
        release(p);
        return late;
    }
    const bool free_packet = h->kind == Kind::noop;
    int unknown = 0;
    for (const Packet* q = lane.awaited.head; q != nullptr && unknown < h->credit; q = q->next) ++unknown;
    if (unknown < h->credit || !lane.credits.heard(h->credit, h->view, h->noops) ||
        !lane.credits.used(free_packet)) {
        release(p);
        return false;
    }
    arrived_before(lane, h->credit);
    if (!free_packet) ++lane.received;
    want_chores(lane);
    // Nobody says anything before both have said hello.
    bool good = lane.their_number != 0 || h->kind == Kind::hello, kept = false;
    switch (good ? h->kind : Kind{}) {
        case Kind::frame:
            lane.had_frames = true;
            good = take_frame(bundle, p, length, &kept);
            break;
        case Kind::hello:
        case Kind::report:
            good = length == sizeof(Report) && (h->kind == Kind::hello) == (lane.their_number == 0);
            good = good && take_report(lane, *packet_as<Report>(p));
            break;
        case Kind::probe:
            good = length == sizeof(Probe);
            if (good && lane.state == LaneState::up) post_missing_receives(lane);
            if (good && ready(lane)) {
                Packet* answer = get_packet();
                if (answer != nullptr) {
                    packet_as<Probe>(answer)->time = packet_as<Probe>(p)->time;
                    answer->sequence = 0;
                    post(lane, answer, Kind::echo, sizeof(Probe));
                }
            }
            break;
        case Kind::echo: {
            good = length == sizeof(Probe) && lane.probed && packet_as<Probe>(p)->time == lane.probed_at;
            if (!good) break;
            lane.probed = false;
            // A long wait is more often a process that did not look than the way: it counts little.
            const double now = static_cast<double>(nanoseconds(Clock::now()) - packet_as<Probe>(p)->time) / 2;
            const double before = lane.latency_ns;
            lane.latency_ns =
                before == 0 || now < before ? now : before + (std::min(now, 2 * before) - before) / 8;
            // The first ones meet a process that is still busy with connecting.
            if (++lane.echoes < kFirstEchoes) send_probe(lane);
            break;
        }
        case Kind::noop:
            good = length == sizeof(Header);
            break;
        default:
            good = false;
            break;
    }
    if (!kept) release(p);
    if (lane.state < LaneState::greeting || lane.suspect || bundle.peer.lost()) return good;
    if (free_packet) post_missing_receives(lane);  // credits.hpp: before the credits of a noop are spent
    if (lane.credits.posted() <= lane.credits.rules().depth / 2) {
        post_missing_receives(lane);
        if (lane.credits.want_noop()) send_noop(lane);
    }
    return good;
}

// What is done when nothing comes in.
int Rails::do_chores() {
    std::vector<Lane*> list;
    list.swap(chores_);
    for (Lane* lane : list) {
        lane->chores = false;
        if (lane->state < LaneState::greeting || lane->suspect || lane->bundle->peer.lost()) continue;
        post_missing_receives(*lane);
        if (lane->state != LaneState::up) continue;
        if (lane->report_due) send_report(*lane, Kind::report);
        const bool soon = lane->tell_soon || lane->bundle->peer.closing_had;
        if (lane->credits.want_noop() || (soon && lane->credits.local() > 0)) send_noop(*lane);
    }
    return static_cast<int>(list.size());
}

}  // namespace viaduct::rails
