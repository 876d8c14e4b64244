// SPDX-License-Identifier: BSD-2-Clause
// Life of a link; its beginning is in link_connect.cpp, its end in link_end.cpp.
#include "providers/wire/link.hpp"

#include <algorithm>

#include "providers/wire/bytes.hpp"
#include "providers/wire/encapsulation.hpp"

namespace viaduct::wire {

namespace {

// A peer that lives says so at least every third keep_alive: frames that are sent again, and lost, put a sign off.
constexpr Time kLongPause = 5;

}  // namespace

const char* name_of(Ended why) {
    switch (why) {
        case Ended::by_peer:
            return "was ended by its peer";
        case Ended::lost:
            return "is lost";
        case Ended::gave_up:
            return "was given up";
        case Ended::refused_ours:
            return "ends, since the peer refused our work";
        case Ended::refused_here:
            return "ends, since the peer's work was refused";
        case Ended::protocol:
            return "ends by an impossible frame";
        case Ended::bad_source:
            return "ends, since memory went away under its work";
    }
    return "?";
}

Link::Link(Node& node, uint32_t index) : node_(node), index_(index), out_(*this), in_(*this) {}

void Link::claim(LinkId id, Cookie cookie) {
    id_ = id;
    cookie_ = cookie;
    state_ = LinkState::closed;
    peer_ = NicAddress{};
    peer_id_ = 0;
    pass_ = node_.draw();
    fast_pass_ = node_.is_keyed() ? node_.draw() : pass_;
    peer_pass_ = 0;
    nonce_ = node_.draw();
    peer_nonce_ = 0;
    first_sequence_ = static_cast<uint32_t>(node_.draw());
    tries_ = arrived_ = path_ = 0;
    proof_ = 0;
    proved_ = false;
    refusals_ = next_refusal_ = 0;
    late_question_ = kNoQuestion;
    late_refused_ = false;
    peer_max_frame_ = kMaxFrame;
    peer_window_ = kMostInFlight;
    peer_known_ = parted_ = pending_ = false;
    deadline_ = next_try_ = no_match_since_ = ack_due_ = kNoTime;
    interval_ = node_.tuning_.first_try;
    reason_ = Reason::disconnected;
    reason_message_ = 0;
    choose_quiet();
}

// A different time for each link and each time: a thousand idle links that spoke all at once would overrun
// the port at the other end, and the same ones again the next time.
void Link::choose_quiet() {
    const Time whole = node_.tuning_.keep_alive;
    quiet_ = whole - static_cast<Time>(node_.random() % static_cast<uint64_t>(whole / 2 + 1));
}

void Link::release() {
    if (state_ == LinkState::closing) --node_.closes_open_;
    state_ = LinkState::closed;
    cookie_ = nullptr;
    in_.end(false);
    node_.free_link(*this);
}

void Link::report(LinkReport* out) const {
    out->peer = peer_;
    out->state = static_cast<uint32_t>(state_);
    out->send_frame = out_.frame_bytes();
    out->window = out_.window();
    out->in_flight = out_.in_flight();
    out->work_open = out_.work_open();
    out->round_trip = out_.round_trip();
    out->received_at = received_at_;
    out->progressed = out_.progressed();
    out->awake = node_.awake_since_;
}

// ---- frames out

Header Link::header(Kind kind, uint32_t length) {
    Header h;
    h.kind = kind;
    h.destination = peer_id_;
    h.source = id_;
    h.sequence = out_.next_sequence();
    h.acknowledge = in_.expected();
    h.credit = cookie_ != nullptr ? node_.host_.receives_posted(cookie_) : 0;
    h.pass = peer_pass_;
    h.length = static_cast<uint16_t>(length);
    return h;
}

std::byte* Link::begin_frame(uint32_t bytes) {
    std::byte* frame = node_.outlet_.begin_frame(bytes);
    if (frame == nullptr) ++node_.counters_.outlet_full;
    return frame;
}

void Link::end_frame(std::byte* frame, const Header& h, Time now, std::span<const Piece> tail) {
    if (!node_.is_keyed()) [[likely]] {
        seal(frame, h, tail);
    } else if (!is_of_connection(h.kind)) {
        node_.seal_own(frame, h);
    } else {
        Header tagged = h;
        const uint64_t whole = whole_out_.of(h.sequence);
        whole_out_.pass(whole);
        tagged.flags |= kFlagTagged;
        tagged.pass = tag_of(key_out_, tagged, whole, frame + kHeaderBytes, tail);
        seal(frame, tagged, tail);
    }
    const uint32_t bytes = kHeaderBytes + h.length;
    if (tail.empty()) {
        node_.outlet_.end_frame(frame, bytes, peer_);
    } else {
        uint32_t written = bytes;
        for (const Piece& piece : tail) written -= piece.bytes;
        node_.outlet_.end_zero_copy(frame, written, tail, peer_);
        ++node_.counters_.zero_copied;
    }
    note_said(bytes, now);
}

void Link::send_selective(Kind kind, Time now) {
    std::byte* frame = begin_frame(kHeaderBytes + kSelectiveBytes);
    if (frame == nullptr) return wake();
    write_selective(frame + kHeaderBytes, in_.selective());
    end_frame(frame, header(kind, kSelectiveBytes), now);
    drop_ack();
    ++(kind == Kind::acknowledge ? node_.counters_.acks_out : node_.counters_.keep_alives_out);
}

// By a frame that is sent until then, or else alone.
void Link::want_ack(Time due, Time now) {
    if (due >= ack_due_) return;
    ack_due_ = due;
    due <= now ? wake() : node_.deadlines_.set_soon(index_, due);
}

void Link::wake() { node_.make_ready(*this); }

// ---- driving

void Link::flush(Time now) {
    if (is_connected()) {
        if (!out_.pump(now)) wake();
        if (is_connected() && ack_due_ <= now) send_selective(Kind::acknowledge, now);
    }
    rearm(now);
}

bool Link::post(const Work& work, Time now) {
    if (!is_connected() || !out_.post(work)) return false;
    if (!out_.pump(now)) wake();
    rearm(now);
    return true;
}

void Link::start(Time now) {
    if (!is_connected()) return;
    in_.start(now);
    if (parted_ && is_connected()) return end(Ended::by_peer, false, Reason::disconnected, 0, now);
    wake();
}

Time Link::own_deadline() const {
    switch (state_) {
        case LinkState::closed:
            return kNoTime;
        case LinkState::requesting:
        case LinkState::peering:
        case LinkState::accepting:
        case LinkState::closing:
            return std::min(next_try_, deadline_);
        case LinkState::connected:
            if (parted_) return kNoTime;
            return std::min({ack_due_, out_.deadline(), sent_at_ + quiet_, received_at_ + silence_});
    }
    return kNoTime;
}

void Link::rearm(Time) {
    if (state_ != LinkState::closed) arm(own_deadline());
}

void Link::on_time(Time now) {
    node_.deadlines_.drop_soon(index_);
    if (const Time due = own_deadline(); is_connected() && due > now) [[likely]]
        return node_.deadlines_.set(index_, due);  // too early
    node_.deadlines_.set(index_, kNoTime);
    switch (state_) {
        case LinkState::closed:
            return;
        case LinkState::connected:
            on_life(now);
            break;
        default:
            try_again(now);
            break;
    }
    rearm(now);
}

// A hint, since other hosts can forge it: it ends nothing, but less silence ends the connection from now on.
void Link::on_unreachable(const NicAddress& address, Time now) {
    const bool known = state_ == LinkState::accepting || state_ == LinkState::connected ||
                       (state_ == LinkState::peering && peer_known_);
    if (!known || !is_same(address, peer_)) return;
    silence_ = std::min(full_silence_, node_.tuning_.silence);
    unreachable_at_ = now;
    if (state_ == LinkState::accepting) deadline_ = std::min(deadline_, received_at_ + accept_timeout());
    rearm(now);
}

// A frame after the last report that the peer is unreachable has shown that it lives.
void Link::check_unreachable() {
    if (received_at_ <= unreachable_at_) return;
    silence_ = full_silence_;
    unreachable_at_ = kNoTime;
}

void Link::on_life(Time now) {
    check_unreachable();
    if (now - received_at_ > kLongPause * node_.tuning_.keep_alive) frames_since_ = now;
    if (now - std::max(received_at_, node_.awake_since_) >= silence_ || !out_.on_time(now)) {
        const bool silent = now - received_at_ >= silence_;
        out_.give_up();
        end(silent ? Ended::lost : Ended::gave_up, true, Reason::gave_up, 0, now);
        return;
    }
    if (now >= received_at_ + silence_) {
        received_at_ = node_.awake_since_;  // we were not running: its frames may be waiting
        if (unreachable_at_ != kNoTime) unreachable_at_ = received_at_;
    }
    if (ack_due_ <= now) send_selective(Kind::acknowledge, now);
    if (now - sent_at_ < quiet_) return;
    send_selective(Kind::keep_alive, now);
    sent_at_ = now;  // also when the outlet is full: not again at once
    choose_quiet();
}

// ---- frames in

bool Link::is_from_peer(const Header& h, const NicAddress& from) const {
    const bool known = state_ == LinkState::accepting || state_ == LinkState::connected ||
                       state_ == LinkState::closing || (state_ == LinkState::peering && peer_known_);
    const bool may_be = !known && node_.tuning_.ports && is_same_ipv4(from, peer_);  // a process of the host asked
    if ((!is_same(from, peer_) && !may_be) || (known && h.source != peer_id_)) return false;
    if (node_.is_keyed()) return known || !is_of_connection(h.kind);
    // A node without the connection has only the numbers of the frames that it received.
    if (h.kind == Kind::reset || h.kind == Kind::disconnected) return known && h.pass == peer_pass_;
    return h.pass == pass_;
}

bool Link::is_authentic(const Frame& f) {
    const uint64_t whole = whole_in_.of(f.header.sequence);
    if (tag_of(key_in_, f.header, whole, f.fields) != f.header.pass) return false;
    whole_in_.pass(whole);
    return true;
}

void Link::on_frame(const Frame& f, const NicAddress& from, Time now) {
    switch (f.header.kind) {
        case Kind::accept:
            return on_accept(f, from, now);
        case Kind::confirm:
            return on_confirm(f, now);
        case Kind::reject:
        case Kind::no_match:
        case Kind::pending:
            return on_answer(f, now);
        case Kind::prove:
            return on_prove(f, now);
        case Kind::disconnect:
            return on_disconnect(f, now);
        case Kind::disconnected:
            if (state_ == LinkState::closing) release();
            return;
        case Kind::reset:
            return on_reset(f, now);
        default:
            return on_connected_frame(f, now);
    }
}

// Only one in sequence ends anything. One out of sequence is queried, now and then: a node without the connection will
// answer with the numbers of the query, and a node that has it will not.
void Link::on_reset(const Frame& f, Time now) {
    ++node_.counters_.resets_in;
    if (state_ == LinkState::requesting || (is_connected() && parted_)) return;  // it has said so before
    if (f.header.sequence != in_.expected()) {
        if (!is_connected() || !node_.may_answer(now)) return;
        ++node_.counters_.challenges;
        return send_selective(Kind::keep_alive, now);
    }
    if (state_ == LinkState::connected) return end(Ended::lost, false, Reason::broken, 0, now);
    if (state_ == LinkState::closing) return release();
    if (state_ == LinkState::accepting) {
        note_unconfirmed(now);
        return fail(Status::timeout, now);
    }
    release_peer();
}

// Of a frame to the peer that is no more than a header.
Header Link::own_numbers() const {
    Header h;
    h.destination = peer_id_;
    h.source = id_;
    h.sequence = out_.next_sequence();
    h.acknowledge = in_.expected();
    h.pass = pass_;
    return h;
}

void Link::reset_peer() { node_.bare(Kind::reset, peer_, own_numbers()); }

void Link::on_connected_frame(const Frame& f, Time now) {
    if ((state_ == LinkState::accepting || state_ == LinkState::peering) && peer_known_)
        become_connected(now);                 // a peer that sends data has seen our accept
    if (state_ == LinkState::closing) return;  // it will be told of the end soon
    if (!is_connected()) {
        ++node_.counters_.wrong_state;
        return;
    }
    received_at_ = now;
    const bool plain = f.header.kind == Kind::acknowledge || f.header.kind == Kind::keep_alive;
    if (plain) {
        const Selective s = read_selective(f);
        out_.on_acknowledge(f.header, &s, now);
    } else {
        out_.on_acknowledge(f.header, nullptr, now);
        if (is_connected()) in_.on_frame(f, now);
    }
    // What has been acknowledged may have shortened the time that the rest is waited for.
    if (is_connected()) arm(out_.deadline());
}

}  // namespace viaduct::wire
