// SPDX-License-Identifier: BSD-2-Clause
// The failure of a lane, and its next connection. Nothing more arrives through a lane that has failed. Each side
// reports on all other lanes what has arrived so far, and sends again what the other side has not received. With no
// lane left, the `hello` of the next connection is the report; a lane carries nothing else before it has the other
// side's.
#include <algorithm>
#include <cstring>

#include "core/clock/limits.hpp"
#include "mpi-adi/transport/multirail/multirail.hpp"

namespace viaduct::multirail {

namespace {

constexpr auto kFirstPause = std::chrono::milliseconds(2);
constexpr auto kLongestPause = std::chrono::milliseconds(100);
constexpr int kFirstEchoes = 8;  // had one after the other when a lane is new

uint64_t nanoseconds(Clock::time_point t) {
    return static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(t.time_since_epoch()).count());
}

bool is_before(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b) < 0; }

}  // namespace

Link& MultiLane::link_of(const protocol::Peer& by) {
    size_t i = 0;
    while (links[i].peer != &by) ++i;
    return links[i];
}

void MultiLane::add(Rail& rail, size_t at, const taskinfo_t* task, const Card& theirs, const Card& mine) {
    const auto rank = static_cast<int>(peer.rank);
    if (!rail.reaches(task, rank, mine, theirs, at)) return;
    Link& link = links[at];
    link.rail = &rail;
    link.proc.p_gid = peer.proc->p_gid;
    link.proc.p_proto = peer.proc->p_proto;
    link.peer = &rail.make_lane(task, theirs, at, rank, &link.proc, *this);
    link.state = LinkState::down;
    link.next_try = Clock::now();
    piece = std::min(piece == 0 ? SIZE_MAX : piece, link.peer->lane->piece - kCarriedHead);
}

bool MultiLane::is_connecting() const {
    return std::any_of(std::begin(links), std::end(links), [](const Link& link) {
        return link.state != LinkState::absent && link.state != LinkState::up;
    });
}

void MultiLane::run_link_timers(Clock::time_point now) {
    for (Link& link : links) {
        if (link.state == LinkState::down && now >= link.next_try) {
            link.state = LinkState::connecting;
            link.rail->connect(*link.peer);
        } else if (link.state == LinkState::handshake && now >= link.hello_deadline) {
            link.suspect = true;
            rails.note_suspect();
        }
    }
}

void MultiLane::on_lane_ready(protocol::Peer& by) {
    Link& link = link_of(by);
    ++link.number;
    link.their_number = 0;
    link.probed = false;
    link.echoes = 0;
    link.state = LinkState::handshake;
    link.hello_deadline = Clock::now() + std::chrono::nanoseconds(limit_ns(TimeLimit::mpi_rail_hello));
    send_report(link, Kind::hello);
}

void MultiLane::send_report(Link& link, Kind kind) {
    Report report = {};
    report.mapping = rails.own_mapping();
    for (size_t i = 0; i < kMostRails; ++i) report.up_to[i] = links[i].ended;
    for (uint32_t i = 0; i < kWindow; ++i) {
        if (early_[(expected_ + i) % kWindow].present) report.received[i / 8] |= static_cast<uint8_t>(1U << i % 8);
    }
    const bool sent = send_control(link, kind, link.number, &report);
    (kind == Kind::hello ? link.hello_due : link.report_due) = !sent;
}

// Called when the lane has failed by itself, or was taken out after a report.
void MultiLane::on_lost(protocol::Peer& by) {
    Link& link = link_of(by);
    const auto at = static_cast<size_t>(&link - links);
    if (link.state == LinkState::absent || link.state == LinkState::down) return;
    const auto now = Clock::now();
    const bool was_connected = link.state >= LinkState::handshake;
    if (link.state == LinkState::up) {
        ++link.losses;
        if (--links_up == 0) down_since = now;
        link.pause = {};
    }
    link.state = LinkState::down;
    link.suspect = link.hello_due = link.report_due = false;
    link.ended = link.number;
    link.batch_bytes = 0;
    link.pause = std::clamp(link.pause * 2, kFirstPause, kLongestPause);
    link.next_try = now + link.pause;
    rails.note_connecting();
    if (!was_connected) return;
    for (uint32_t number = oldest_; number != next_; ++number) {
        Kept& k = kept(number);
        if (k.link != at) continue;
        if (k.state == Kept::out) {
            k.state = Kept::unconfirmed;
            if (k.part) --link.stripes;
            link.unsettled = true;
            link.unsettled_number = link.their_number;
        } else if (k.state == Kept::to_send) {
            k.written = 0;  // its stripe was written through this lane
        }
    }
    for (size_t i = 0; i < parts_.size();) {
        Part* part = parts_[i];
        if (part->link != at) {
            ++i;
            continue;
        }
        Transfer& t = *part->whole;
        if (part->list) {
            rails.restart(t);
        } else if (part->write) {
            --t.writes;
            check_complete(t);
        } else {
            redo_.push_back({&t, part->at, part->bytes});
        }
        drop(part);
    }
    settle(link);
    for (Link& other : links) {
        if (other.state == LinkState::up && !other.suspect) send_report(other, Kind::report);
    }
}

void MultiLane::take_out_suspects() {
    for (Link& link : links) {
        if (link.suspect && !peer.lost()) link.peer->protocol->fail(*link.peer, "the other side has ended it");
    }
}

// When the other side has reported the end of that connection: what had arrived is confirmed, the rest is sent again.
void MultiLane::settle(Link& link) {
    if (!link.unsettled || is_before(link.their_ended, link.unsettled_number)) return;
    link.unsettled = false;
    const auto at = static_cast<size_t>(&link - links);
    for (uint32_t number = oldest_; number != next_; ++number) {
        Kept& k = kept(number);
        if (k.state != Kept::unconfirmed || k.link != at) continue;
        const uint32_t bit = number - link.report_before;
        if (bit > UINT32_MAX / 2 || (bit < kWindow && (link.report_received[bit / 8] >> bit % 8 & 1) != 0)) {
            confirm(k);
        } else {
            k.state = Kept::to_send;
            k.written = 0;
            ++to_send_;
        }
    }
}

// False: it reports frames that were not sent.
bool MultiLane::take_report(Link& link, const Prefix& prefix, const Report& report) {
    const uint32_t had = prefix.had;
    for (uint32_t bit = next_ - had; bit < kWindow; ++bit) {
        if ((report.received[bit / 8] >> bit % 8 & 1) != 0) return false;
    }
    for (size_t i = 0; i < kMostRails; ++i) {
        Link& told = links[i];
        if (told.state == LinkState::absent) continue;
        const uint32_t up_to = report.up_to[i];
        // Reports may overtake each other.
        if (is_before(told.their_ended, up_to)) {
            told.their_ended = up_to;
            told.report_before = had;
            std::memcpy(told.report_received, report.received, sizeof told.report_received);
        }
        settle(told);
        const bool current = told.state >= LinkState::handshake && told.their_number != 0;
        if (!current || is_before(up_to, told.their_number)) continue;
        told.suspect = true;
        rails.note_suspect();
    }
    if (link.state != LinkState::handshake || link.suspect) return true;
    link.state = LinkState::up;
    link.pause = {};
    ++links_up;
    send_probe(link);
    if (!peer.ready()) rails.lane_ready(peer);
    return true;
}

void MultiLane::send_probe(Link& link) {
    link.probed_at = nanoseconds(Clock::now());
    link.probed = send_control(link, Kind::probe, link.probed_at, nullptr);
}

// Probes every lane to a process that is in use: a lane with a bad result carries nothing until it has a better one.
void MultiLane::probe() {
    if (!was_used()) return;
    for (Link& link : links) {
        if (link.state == LinkState::up && !link.suspect && !link.probed) send_probe(link);
    }
}

bool MultiLane::take_control(Link& link, Kind kind, const Prefix& prefix, const Frame& frame, const char* payload) {
    switch (kind) {
        case Kind::hello:
            if (frame.sreq == 0 || frame.sreq > UINT32_MAX) return false;
            link.their_number = static_cast<uint32_t>(frame.sreq);
            [[fallthrough]];
        case Kind::report: {
            Report report;
            if (frame.bytes != sizeof report || frame.sreq != link.their_number) return false;
            std::memcpy(static_cast<void*>(&report), payload, sizeof report);
            if (kind == Kind::hello && !peer.ready()) process.note_mapping(report.mapping, kOwnMapping);
            return take_report(link, prefix, report);
        }
        case Kind::probe:
            if (frame.bytes != 0) return false;
            if (link.state == LinkState::up && !link.suspect) send_control(link, Kind::echo, frame.sreq, nullptr);
            return true;
        case Kind::echo: {
            if (frame.bytes != 0 || !link.probed || frame.sreq != link.probed_at) return false;
            link.probed = false;
            // A long round trip is more often a process that did not poll than a slow lane: it counts little.
            const double now = static_cast<double>(nanoseconds(Clock::now()) - frame.sreq) / 2;
            const double before = link.latency_ns;
            link.latency_ns =
                before == 0 || now < before ? now : before + (std::min(now, 2 * before) - before) / 8;
            // The first ones meet a process that is still busy with connecting.
            if (++link.echoes < kFirstEchoes && link.state == LinkState::up && !link.suspect) send_probe(link);
            return true;
        }
        case Kind::ack:
            return frame.bytes == 0;
    }
    return false;
}

// The process is lost or closed: nothing stays under way. Its lanes stay, idle, until the end.
void MultiLane::cut() {
    if (acknowledged_ != expected_) send_ack();  // the other side waits for it before it closes
    for (Link& link : links) {
        if (link.state == LinkState::absent) continue;
        link.state = LinkState::absent;
        link.suspect = false;
        if (link.peer->lost()) continue;
        link.peer->stops |= protocol::Peer::ended;
        link.peer->lane->cut();
        link.peer->protocol->finish_done_transfers();
    }
    links_up = 0;
    while (!parts_.empty()) drop(parts_.back());
    redo_.clear();
    for (uint32_t i = 0; i < kWindow; ++i) {
        kept_[i].state = Kept::none;
        kept_[i].transfer = nullptr;
        kept_[i].part = false;
        kept_[i].bytes = 0;
        early_[i].present = false;
    }
    oldest_ = next_;
    to_send_ = 0;
    kept_bytes_ = 0;
    ack_due_ = ack_soon_ = false;
}

}  // namespace viaduct::multirail
