// SPDX-License-Identifier: BSD-2-Clause
// One order over all lanes: frames get numbers when they are sent, and are delivered by them.
#include <algorithm>
#include <cstring>
#include <limits>

#include "mpi-adi/transport/multirail/multirail.hpp"

namespace viaduct::multirail {

namespace {

constexpr double kSameLatency = 2;      // lanes up to so much slower than the fastest share first fragments
constexpr double kLatencyNoise = 2000;  // ns

bool is_control(const Frame& frame) { return static_cast<uint8_t>(frame.type) >= static_cast<uint8_t>(Kind::hello); }

}  // namespace

double least_latency(const Link (&links)[kMostRails]) {
    double least = std::numeric_limits<double>::infinity();
    for (const Link& link : links) {
        if (link.state == LinkState::up && link.latency_ns != 0) least = std::min(least, link.latency_ns);
    }
    return least;
}

size_t MultiLane::eager_limit(bool contiguous) const {
    size_t least = SIZE_MAX;
    for (const Link& link : links) {
        if (link.state == LinkState::up) least = std::min(least, link.peer->lane->eager_limit(contiguous));
    }
    return least == SIZE_MAX ? piece : least;
}

// --- out ---

// Makes the packet of a frame, all but the acknowledgement in its Prefix.
Kept& MultiLane::pack(const Frame& frame, const protocol::Payload& payload) {
    Kept& k = kept(next_);
    const bool whole = frame.type == FrameType::eager && frame.bytes == frame.length &&
                       frame.bytes + sizeof(Prefix) <= rails.whole_limit();
    const size_t head = whole ? sizeof(Prefix) : kCarriedHead;
    char* at = k.packet.room(head + frame.bytes);
    if (whole) {
        k.frame = frame;
    } else {
        std::memcpy(at + sizeof(Prefix), &frame, sizeof frame);
        k.frame = {};
        k.frame.type = FrameType::carried;
    }
    k.frame.bytes = static_cast<uint32_t>(head + frame.bytes);
    k.frame.length = k.frame.bytes;
    payload.copy(at + head, frame.bytes);
    Prefix prefix;
    prefix.number = next_++;
    prefix.had = 0;
    std::memcpy(at, static_cast<void*>(&prefix), sizeof prefix);
    kept_bytes_ += k.frame.bytes;
    k.state = Kept::to_send;
    ++to_send_;
    return k;
}

bool MultiLane::post_on(Kept& k, size_t at) {
    Link& link = links[at];
    if (link.state != LinkState::up || link.suspect) return false;
    Le32 had;
    had = expected_;
    std::memcpy(k.packet.at() + offsetof(Prefix, had), static_cast<void*>(&had), sizeof had);
    if (!link.peer->lane->put(k.frame, {k.packet.at()})) return false;
    note_acknowledged();
    --to_send_;
    k.state = Kept::out;
    if (k.part) ++link.stripes;
    k.link = static_cast<uint8_t>(at);
    ++link.frames;
    return true;
}

// In turn by the lanes of lowest latency and those that are not measured yet; when none of them has room, by the
// others.
bool MultiLane::post(Kept& k) {
    const double least = least_latency(links);
    for (const bool fast : {true, false}) {
        for (size_t i = 0; i < kMostRails; ++i) {
            const size_t at = (turn_ + i) % kMostRails;
            if ((links[at].latency_ns <= least * kSameLatency + kLatencyNoise) != fast || !post_on(k, at)) continue;
            if (fast) turn_ = at + 1;
            return true;
        }
    }
    return false;
}

// A frame without room on any lane is kept here; those behind it wait with their callers.
bool MultiLane::put(const Frame& frame, const protocol::Payload& payload) {
    if (to_send_ != 0) send_kept();
    if (!may_send()) return false;
    post(pack(frame, payload));
    return true;
}

// Frames that a failed lane has not delivered, and frames that found no room behind their stripe.
int MultiLane::send_kept() {
    int done = 0;
    for (uint32_t number = oldest_; number != next_ && to_send_ != 0; ++number) {
        Kept& k = kept(number);
        if (k.state != Kept::to_send) continue;
        if (k.bytes != 0 ? !write_rest(k) || !post_on(k, k.link) : !post(k)) break;
        ++resent;
        ++done;
    }
    return done;
}

// The other side has received this frame.
void MultiLane::confirm(Kept& k) {
    if (k.state == Kept::none) return;
    if (k.state == Kept::to_send) --to_send_;
    if (k.state == Kept::out && k.part) --links[k.link].stripes;
    k.state = Kept::none;
    k.part = false;
    k.bytes = 0;
    kept_bytes_ -= k.frame.bytes;
    k.packet.clear();
    Transfer* t = std::exchange(k.transfer, nullptr);
    if (t == nullptr) return;
    --t->waited;
    check_complete(*t);
}

// False: the number is impossible.
bool MultiLane::acknowledge(uint32_t had) {
    const uint32_t more = had - oldest_;
    if (more > next_ - oldest_) return more > UINT32_MAX / 2;  // older than what is known
    for (; oldest_ != had; ++oldest_) confirm(kept(oldest_));
    return true;
}

// The packet that is sent acknowledges everything received so far.
void MultiLane::note_acknowledged() {
    acknowledged_ = expected_;
    unacknowledged_bytes_ = 0;
    ack_soon_ = ack_due_ = false;
}

bool MultiLane::send_control(Link& link, Kind kind, uint64_t word, const Report* report) {
    char packet[kCarriedHead + sizeof(Report)];
    const size_t bytes = report != nullptr ? sizeof *report : 0;
    Prefix prefix;
    prefix.number = 0;
    prefix.had = expected_;
    Frame own = {};
    own.type = static_cast<FrameType>(kind);
    own.bytes = static_cast<uint32_t>(bytes);
    own.sreq = word;
    std::memcpy(packet, static_cast<void*>(&prefix), sizeof prefix);
    std::memcpy(packet + sizeof prefix, &own, sizeof own);
    if (report != nullptr) std::memcpy(packet + kCarriedHead, static_cast<const void*>(report), bytes);
    Frame frame = {};
    frame.type = FrameType::carried;
    frame.bytes = static_cast<uint32_t>(kCarriedHead + bytes);
    frame.length = frame.bytes;
    if (!link.peer->lane->put(frame, {packet})) return false;
    note_acknowledged();
    return true;
}

void MultiLane::send_ack() {
    ack_due_ = true;
    for (size_t i = 0; i < kMostRails && ack_due_; ++i) {
        Link& link = links[(turn_ + i) % kMostRails];
        if (link.state == LinkState::up && !link.suspect) send_control(link, Kind::ack, 0, nullptr);
    }
}

// --- in ---

void MultiLane::on_whole(protocol::Peer& by, const envelope& env, const void* data) {
    const Link& link = link_of(by);
    const auto* at = static_cast<const char*>(data);
    const auto bytes = static_cast<size_t>(env.ev_len);
    bool good = bytes >= sizeof(Prefix) && link.their_number != 0;
    if (good) {
        Prefix prefix;
        std::memcpy(static_cast<void*>(&prefix), at, sizeof prefix);
        Frame frame = {};
        frame.type = FrameType::eager;
        frame.flags = static_cast<uint8_t>(env.ev_mode);
        frame.bytes = static_cast<uint32_t>(bytes - sizeof prefix);
        frame.length = frame.bytes;
        frame.context = env.ev_ctxt;
        frame.tag = env.ev_tag;
        frame.rank = env.ev_rank;
        good = acknowledge(prefix.had) && take(prefix, frame, at + sizeof prefix);
    }
    if (!good) rails.fail(peer, "it sent an invalid message");
}

void MultiLane::on_carried(protocol::Peer& by, const void* payload, size_t bytes) {
    Link& link = link_of(by);
    const auto* at = static_cast<const char*>(payload);
    bool good = bytes >= kCarriedHead;
    if (good) {
        Prefix prefix;
        Frame frame;
        std::memcpy(static_cast<void*>(&prefix), at, sizeof prefix);
        std::memcpy(&frame, at + sizeof prefix, sizeof frame);
        const auto kind = static_cast<Kind>(frame.type);
        // `hello` comes first, and once.
        good = frame.bytes == bytes - kCarriedHead && (kind == Kind::hello) == (link.their_number == 0) &&
               acknowledge(prefix.had) &&
               (is_control(frame) ? take_control(link, kind, prefix, frame, at + kCarriedHead)
                                  : take(prefix, frame, at + kCarriedHead));
    }
    if (!good) rails.fail(peer, "it sent an invalid frame");
}

// Delivers a frame when its number is the next one, else keeps it. A frame that was received before is dropped.
bool MultiLane::take(const Prefix& prefix, const Frame& frame, const char* payload) {
    const uint32_t number = prefix.number, ahead = number - expected_;
    if (ahead > UINT32_MAX / 2) return true;
    if (ahead >= kWindow) return false;
    if (frame.type == FrameType::placed || frame.type == FrameType::part || frame.type == FrameType::closing)
        ack_soon_ = true;
    unacknowledged_bytes_ += frame.bytes;
    if (ahead == 0 && rails.opened()) {
        deliver(frame, payload);
        deliver_ready();
    } else if (Early& early = early_[number % kWindow]; !early.present) {
        early.present = true;
        early.frame = frame;
        if (frame.bytes != 0) std::memcpy(early.payload.room(frame.bytes), payload, frame.bytes);
    }
    if (!peer.lost() && (expected_ - acknowledged_ >= kWindow / 8 || unacknowledged_bytes_ >= kUnacknowledged))
        send_ack();
    return true;
}

void MultiLane::deliver(const Frame& frame, const char* payload) {
    ++expected_;
    const char* const at = payload != nullptr ? payload : "";  // an empty message has an address, too
    if (!rails.incoming(peer, frame, at)) rails.fail(peer, "it sent a frame that is invalid in this state");
}

void MultiLane::deliver_ready() {
    while (!peer.lost() && early_[expected_ % kWindow].present) {
        Early& early = early_[expected_ % kWindow];
        early.present = false;
        deliver(early.frame, early.payload.at());
        early.payload.clear();
    }
}

// Sends what is due; in an idle pass also what may wait.
int MultiLane::work(bool idle) {
    int done = 0;
    if (to_send_ != 0) done += send_kept();
    if (!redo_.empty()) done += redo();
    for (Link& link : links) {
        if (link.hello_due && link.state == LinkState::handshake) send_report(link, Kind::hello);
        if (link.report_due && link.state == LinkState::up) send_report(link, Kind::report);
    }
    if (ack_due_ || (idle && (ack_soon_ || (peer.closing_received && acknowledged_ != expected_)))) send_ack();
    return done;
}

}  // namespace viaduct::multirail
