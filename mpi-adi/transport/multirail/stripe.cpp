// SPDX-License-Identifier: BSD-2-Clause
// Long messages in stripes. No plan is made when a message begins: a lane takes its next stripe when it has room for
// one, as large as its measured bandwidth moves in a millisecond, so that shares follow what each lane does at this
// moment; near the end, stripes shrink to each lane's share of the rest, so that all end together.

#include <algorithm>

#include "mpi-adi/transport/multirail/multirail.hpp"

namespace viaduct::multirail {

namespace {

constexpr double kWeight = 0.25;                               // of a new measurement
constexpr auto kStripeTime = std::chrono::microseconds(1000);  // what a stripe should take
constexpr size_t kFirstStripe = 128 * 1024;                    // before there is one
constexpr size_t kStripeUnit = 4096;
constexpr auto kPollGap = std::chrono::milliseconds(1);

size_t rounded(double bytes) {
    return (static_cast<size_t>(bytes) + kStripeUnit - 1) / kStripeUnit * kStripeUnit;
}

}  // namespace

size_t stripe_size(const Link (&links)[kMostRails], const Link& link, size_t left, size_t most) {
    double all = 0;
    for (const Link& other : links) {
        if (other.state == LinkState::up) all += other.bandwidth;
    }
    size_t bytes = kFirstStripe;
    if (link.bandwidth > 0) {
        const double in_time = link.bandwidth * std::chrono::duration<double>(kStripeTime).count();
        const double share = static_cast<double>(left) * link.bandwidth / all;
        bytes = rounded(std::min(in_time, share));
    }
    const size_t least = std::min(kLeastStripe, most);
    bytes = std::clamp(bytes, least, most);
    if (left >= bytes + least) return bytes;
    return left <= most ? left : left - least;  // so that no rest below the least is left over
}

// The one with the fewest stripes under way that both sides have registered the memory with; kMostRails: none has room.
size_t MultiLane::choose_for_stripe(const protocol::PieceList& near, const protocol::PieceList& far) {
    size_t best = kMostRails;
    for (size_t i = 0; i < kMostRails; ++i) {
        const Link& link = links[i];
        if (link.state != LinkState::up || link.suspect || link.stripes >= kStripesAhead || !near.known_to(i) ||
            !far.known_to(i))
            continue;
        if (best == kMostRails || link.stripes < links[best].stripes) best = i;
    }
    return best;
}

// One remote write or read by that lane, from both positions on; how much of it.
size_t MultiLane::move_part(size_t at, bool write, const protocol::PieceList& near, const protocol::PieceList& far,
                            size_t most, Transfer& t, size_t offset) {
    Link& link = links[at];
    auto part = std::make_unique<Part>();
    part->peer = link.peer;
    part->each = true;
    part->whole = &t;
    part->link = at;
    part->at = offset;
    part->write = write;
    part->list = t.fetching;
    part->posted = Clock::now();
    part->bytes = link.peer->lane->transfer(write, near, far, most, *part);
    if (part->bytes == 0) return 0;
    ++link.stripes;
    rails.add_stripes(1);
    link.stripe_bytes += part->bytes;
    if (!part->list) ++t.writes;
    parts_.push_back(part.get());
    return part.release()->bytes;
}

size_t MultiLane::transfer(bool write, const protocol::PieceList& near, const protocol::PieceList& far, size_t most,
                           Transfer& t) {
    if (to_send_ != 0 || (write && !may_send())) return 0;
    const size_t at = choose_for_stripe(near, far);
    if (at == kMostRails) return write ? send_part(most, t) : 0;
    if (!t.fetching) most = std::min(most, stripe_size(links, links[at], most, rails.most_stripe()));
    const size_t bytes = move_part(at, write, near, far, most, t, t.offset);
    if (!write || bytes == 0) return bytes;
    Frame frame = {};
    frame.type = FrameType::placed;
    frame.length = bytes;
    frame.rreq = t.peer_request;
    Kept& k = pack(frame, {});
    k.transfer = &t;
    k.at = t.offset;
    k.bytes = k.written = bytes;
    k.link = static_cast<uint8_t>(at);
    ++t.waited;
    post_on(k, at);
    return bytes;
}

// A stripe in a frame, on a lane that reaches no memory, while all others are busy or down.
size_t MultiLane::send_part(size_t most, Transfer& t) {
    for (size_t at = 0; at < kMostRails; ++at) {
        Link& link = links[at];
        if (link.state != LinkState::up || link.suspect || link.rail->memory() != nullptr ||
            link.stripes >= kStripesAhead)
            continue;
        Frame frame = {};
        frame.type = FrameType::part;
        frame.bytes = static_cast<uint32_t>(std::min(most, piece));
        frame.length = t.offset;
        frame.rreq = t.peer_request;
        Kept& k = pack(frame, {nullptr, t.request, t.offset});
        k.transfer = &t;
        k.part = true;
        ++t.waited;
        link.stripe_bytes += frame.bytes;
        post_on(k, at);
        return frame.bytes;
    }
    return 0;
}

// What is not written yet of a stripe, all by one lane. False: there is no room now.
bool MultiLane::write_rest(Kept& k) {
    Transfer& t = *k.transfer;
    if (k.written == 0) {
        const size_t at = choose_for_stripe(*t.own, *t.theirs);
        if (at == kMostRails) return false;
        k.link = static_cast<uint8_t>(at);
    }
    while (k.written < k.bytes) {
        const size_t offset = k.at + k.written;
        t.own->seek(offset);
        t.theirs->seek(offset);
        k.written += move_part(k.link, true, *t.own, *t.theirs, k.bytes - k.written, t, offset);
        t.own->seek(t.offset);
        t.theirs->seek(t.offset);
        if (k.at + k.written == offset) return false;
    }
    return true;
}

// Repeats reads that a failed lane has not finished.
int MultiLane::redo() {
    int done = 0;
    while (!redo_.empty()) {
        Redo& one = redo_.back();
        Transfer& t = *one.transfer;
        const size_t at = choose_for_stripe(*t.own, *t.theirs);
        if (at == kMostRails) return done;
        t.own->seek(one.at);
        t.theirs->seek(one.at);
        const size_t bytes = move_part(at, false, *t.own, *t.theirs, one.bytes, t, one.at);
        t.own->seek(t.offset);
        t.theirs->seek(t.offset);
        if (bytes == 0) return done;
        one.at += bytes;
        one.bytes -= bytes;
        ++done;
        if (one.bytes != 0) continue;
        --t.writes;  // that of the broken one
        redo_.pop_back();
    }
    return done;
}

void MultiLane::drop(Part* part) {
    --links[part->link].stripes;
    rails.add_stripes(-1);
    parts_.erase(std::find(parts_.begin(), parts_.end(), part));
    delete part;
}

// The NIC is done with it.
void MultiLane::on_moved(Transfer& transfer) {
    auto* part = static_cast<Part*>(&transfer);
    Link& link = links[part->link];
    if (link.batch_bytes == 0) link.batch_began = std::max(part->posted, link.last_stripe);
    link.batch_bytes += part->bytes;
    rails.note_measurement();
    Transfer& t = *part->whole;
    const bool list = part->list;
    drop(part);
    if (list) return rails.transfer_done(t);
    --t.writes;
    check_complete(t);
}

// Measures from when the lane began with the stripes to when its NIC was found to be done. After a pause between passes
// the result is a lower bound only.
void MultiLane::measure(Clock::time_point now) {
    for (Link& link : links) {
        if (link.batch_bytes == 0) continue;
        const double seconds = std::chrono::duration<double>(now - link.batch_began).count();
        const double found = static_cast<double>(link.batch_bytes) / std::max(seconds, 1e-7);
        link.batch_bytes = 0;
        link.last_stripe = now;
        if (link.bandwidth == 0) {
            link.bandwidth = found;
        } else if (found > link.bandwidth || now - rails.last_pass() < kPollGap) {
            link.bandwidth += kWeight * (found - link.bandwidth);
        }
    }
}

// Complete: the other side has acknowledged what was written, and our NICs have completed everything.
void MultiLane::check_complete(Transfer& t) {
    if (t.waited == 0 && t.writes == 0 && t.offset == t.end) rails.transfer_done(t);
}

MultiLane::~MultiLane() {
    while (!parts_.empty()) drop(parts_.back());
}

}  // namespace viaduct::multirail
