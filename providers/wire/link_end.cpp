// SPDX-License-Identifier: BSD-2-Clause
// The end of a link, by either side.
#include <algorithm>

#include "providers/wire/bytes.hpp"
#include "providers/wire/link.hpp"

namespace viaduct::wire {

void Link::end(Ended why, bool tell_peer, Reason reason, uint32_t message, Time now) {
    if (!is_connected()) return;
    const Cookie cookie = cookie_;
    if (why != Ended::refused_here) in_.end(true);  // what the host refused it has settled itself
    in_.end(false);
    if (tell_peer) close(reason, message, now);
    cookie_ = nullptr;
    node_.host_.on_ended(cookie, why);
    if (!tell_peer) release();
}

void Link::disconnect(Time now) {
    switch (state_) {
        case LinkState::closed:
        case LinkState::closing:
            return;
        case LinkState::requesting:
            withdraw();
            return release();
        case LinkState::accepting:
        case LinkState::peering:
            note_unconfirmed(now);
            if (peer_known_) reset_peer();
            return release();
        case LinkState::connected:
            break;
    }
    in_.end(false);
    close(Reason::disconnected, 0, now);
    cookie_ = nullptr;
    rearm(now);
}

// Tells the peer until it has heard it. What we have received is acknowledged with it.
void Link::close(Reason reason, uint32_t message, Time now) {
    state_ = LinkState::closing;
    ++node_.closes_open_;
    reason_ = reason;
    reason_message_ = message;
    finding_ = cookie_ != nullptr ? node_.host_.finding(cookie_) : Finding{};
    deadline_ = now + node_.tuning_.close_linger;
    interval_ = node_.tuning_.first_try;
    send_disconnect(now);
}

void Link::announce_close(Time now) {
    if (is_connected()) disconnect(now);
}

void Link::send_disconnect(Time now) {
    next_try_ = now + interval_;
    interval_ = std::min(interval_ * 2, node_.tuning_.max_try);
    const uint32_t bytes = kEndingBytes + (finding_ ? kFindingBytes : 0);
    std::byte* frame = begin_frame(kHeaderBytes + bytes);
    if (frame == nullptr) return;
    write_ending(frame + kHeaderBytes, {reason_, reason_message_});
    if (finding_) write_finding(frame + kHeaderBytes + kEndingBytes, finding_);
    end_frame(frame, header(Kind::disconnect, bytes), now);
}

void Link::on_disconnect(const Frame& f, Time now) {
    if ((state_ == LinkState::accepting || state_ == LinkState::peering) && peer_known_)
        become_connected(now);
    if (!is_connected() && state_ != LinkState::closing) return;
    node_.bare(Kind::disconnected, peer_, own_numbers());
    if (state_ == LinkState::closing) return release();
    out_.on_acknowledge(f.header, nullptr, now);
    if (!is_connected()) return;
    const Ending e = read_ending(f);
    if (const Finding finding = read_finding(f)) node_.host_.on_finding(cookie_, finding);
    Ended why = Ended::lost;
    switch (e.reason) {
        case Reason::no_receive:
        case Reason::bad_receive:
            out_.refused(e.message, Outcome::receive_refused);
            why = Ended::refused_ours;
            break;
        case Reason::not_permitted:
            out_.refused(e.message, Outcome::not_permitted);
            why = Ended::refused_ours;
            break;
        case Reason::disconnected:
            why = Ended::by_peer;
            // It may leave while this end's program still waits to be told that it is connected.
            parted_ = !in_.is_started();
            if (parted_) return;
            break;
        case Reason::gave_up:  // it has heard nothing of us: nor has it what is not acknowledged
            out_.give_up();
            break;
        case Reason::protocol:
        case Reason::broken:
            break;
    }
    end(why, false, Reason::disconnected, 0, now);
}

}  // namespace viaduct::wire
