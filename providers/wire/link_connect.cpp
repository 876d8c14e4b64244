// SPDX-License-Identifier: BSD-2-Clause
// The hand-shake of a link: request or peer request, accept, confirm; tried again until answered. The first try
// is padded to the largest size both ends may use, each further one is sent in all sizes, the largest first:
// what arrives first is the path MTU.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "providers/wire/bytes.hpp"
#include "providers/wire/encapsulation.hpp"
#include "providers/wire/link.hpp"

#include <vipl.h>

namespace viaduct::wire {

namespace {

// Jumbo frames with a tunnel in between, Ethernet, Ethernet under UDP, tunnels, IPv6's least, IPv4's least.
constexpr uint32_t kMtuSteps[] = {8900, 4056, 1486, 1460, 1380, 1220, kMinFrame};
constexpr uint32_t kSmallest = kHeaderBytes + kConnectBytes;

// The source address of a request may be forged. Until a frame of the peer shows that it gets ours, the link sends at
// most so many times the bytes of the peer's requests (RFC 9000, 8.1).
constexpr uint64_t kMostAnswered = 3;
// The part of these bytes that is kept for a pending and a reset.
constexpr uint64_t kAnsweredBeside = 2 * (kHeaderBytes + kAnswerBytes);

}  // namespace

// The largest frame that both ends take, or that is known to pass.
uint32_t Link::probe_bytes() const {
    const uint32_t most = std::min(node_.tuning_.max_frame, peer_max_frame_);
    return path_ != 0 ? std::min(path_, most) : most;
}

// The size that has passed when the peer has answered, but has not said what has arrived.
uint32_t Link::safe_bytes() const { return path_ != 0 || tries_ <= 1 ? probe_bytes() : kMinFrame; }

void Link::send_connect(Kind kind, LinkId destination, uint64_t nonce, uint32_t padded, Time now) {
    const uint32_t bytes = std::max(padded, kSmallest);
    std::byte* frame = begin_frame(bytes);
    if (frame == nullptr) return;
    std::memset(frame, 0, bytes);
    Connect c;
    c.nonce = nonce;
    c.sequence = first_sequence_;
    c.max_frame = static_cast<uint16_t>(node_.tuning_.max_frame);
    c.arrived = static_cast<uint16_t>(arrived_);
    c.traits = traits_;
    c.attended = node_.tuning_.attended;
    c.window = node_.tuning_.window;
    c.local = local_;
    c.remote = remote_;
    c.pass = pass_;
    write_connect(frame + kHeaderBytes, c);
    const bool has_place = bytes >= kSmallest + kCookieBytes;
    if (kind == Kind::request && has_place) write_cookie(frame + kHeaderBytes, proof_);
    Header h = header(kind, bytes - kHeaderBytes);
    h.destination = destination;
    end_frame(frame, h, now);
}

// An accept to a peer whose address may be forged.
void Link::send_accept(uint32_t padded, Time now) {
    const uint32_t bytes = std::max(proved_ ? padded : std::min(padded, arrived_), kSmallest);
    if (!proved_) {
        if (bytes > unproven_bytes_) return;  // until another copy of the request has come
        unproven_bytes_ -= bytes;
    }
    send_connect(Kind::accept, peer_id_, peer_nonce_, bytes, now);
}

void Link::send_confirm(Time now) {
    std::byte* frame = begin_frame(kHeaderBytes + kAnswerBytes);
    if (frame == nullptr) return;  // the accept will come again
    write_answer(frame + kHeaderBytes, {peer_nonce_, 0, static_cast<uint16_t>(arrived_)});
    end_frame(frame, header(Kind::confirm, kAnswerBytes), now);
}

void Link::request(LinkState state, const EndAddress& local, const EndAddress& remote, const ViTraits& traits,
                   Time deadline, Time now) {
    state_ = state;
    local_ = local;
    local_.host = node_.own_;
    remote_ = remote;
    peer_ = remote.host;
    traits_ = traits;
    deadline_ = deadline;
    try_again(now);
    rearm(now);
}

void Link::accept(const Request& request, const ViTraits& traits, Time now) {
    const Connect& fields = request.fields;
    state_ = LinkState::accepting;
    peer_ = request.from;
    traits_ = traits;
    local_ = fields.remote;
    local_.host = node_.own_;
    remote_ = fields.local;
    arrived_ = request.arrived;
    proved_ = request.proved;
    unproven_bytes_ = kMostAnswered * request.arrived - kAnsweredBeside;
    nonce_ = peer_nonce_ = fields.nonce;
    learn(fields, request.source);
    received_at_ = now;
    deadline_ = now + accept_timeout();
    try_again(now);
    rearm(now);
}

void Link::learn(const Connect& c, LinkId source) {
    peer_known_ = true;
    peer_id_ = source;
    peer_pass_ = c.pass;
    remote_traits_ = c.traits;
    silence_ = full_silence_ = c.attended ? node_.tuning_.attended_silence : node_.tuning_.silence;
    unreachable_at_ = kNoTime;
    peer_max_frame_ = std::clamp<uint32_t>(c.max_frame, kMinFrame, kMaxFrame);
    peer_window_ = std::clamp<uint32_t>(c.window, 1, kMostInFlight);
    const bool reliable = traits_.reliability != VIP_SERVICE_UNRELIABLE;
    in_.begin(reliable);
    in_.expect(c.sequence);
    out_.begin(first_sequence_, reliable);
    if (!node_.is_keyed()) return;
    key_out_ = key_of_direction(*node_.tuning_.key, pass_, peer_pass_);
    key_in_ = key_of_direction(*node_.tuning_.key, peer_pass_, pass_);
    whole_out_.begin(first_sequence_);
    whole_in_.begin(c.sequence);
}

void Link::send_try(uint32_t padded, Time now) {
    switch (state_) {
        case LinkState::requesting:
            return send_connect(Kind::request, 0, nonce_, padded, now);
        case LinkState::peering:
            send_connect(Kind::peer_request, 0, nonce_, padded, now);
            // A partner that has ended answers the accept with a reset, and another one may match.
            if (peer_known_) send_accept(padded, now);
            return;
        default:
            return send_accept(padded, now);
    }
}

Time Link::accept_timeout() const { return std::max(node_.tuning_.accept_timeout, silence_); }

// Time for another try, or too late for any.
void Link::try_again(Time now) {
    if (state_ == LinkState::closing) {
        if (now >= deadline_) return release();
        if (now >= next_try_) send_disconnect(now);
        return;
    }
    if (state_ == LinkState::accepting) {
        // Time in which we were not running does not count: the answer may be waiting.
        deadline_ = std::max(deadline_, node_.awake_since_ + accept_timeout());
    }
    if (asks()) node_.take_refusals(now);
    if (now >= deadline_) {
        if (state_ == LinkState::accepting) {
            note_unconfirmed(now);
            reset_peer();
        }
        if (state_ == LinkState::requesting) withdraw();
        // A program that has the request may be deciding still, whatever has become of the port.
        const bool unmatched = no_match_since_ != kNoTime || (is_refused() && !pending_);
        return fail(unmatched ? Status::no_match : Status::timeout, now);
    }
    if (is_left_without_match(now)) {
        withdraw();  // what listens there may have begun a moment ago
        return fail(Status::no_match, now);
    }
    if (next_try_ != kNoTime && now < next_try_) return;
    // A partner that has matched and sends nothing more has ended: another one may match.
    const Time last_sign = std::max(received_at_, node_.awake_since_);
    if (state_ == LinkState::peering && peer_known_ && now - last_sign >= accept_timeout()) release_peer();
    // Answers that are due soon are worth asking for often; silence is not.
    next_try_ = now + interval_;
    const bool awaits_match = no_match_since_ != kNoTime && now - no_match_since_ < node_.tuning_.no_match_grace;
    if (!awaits_match) interval_ = std::min(interval_ * 2, node_.tuning_.max_try);
    const bool is_late = refusals_ != 0 && now >= refusal_counts_from();
    if (is_late && late_question_ == kNoQuestion) {
        late_question_ = tries_;
        next_try_ = now + node_.tuning_.first_try;  // its answer is due soon
    }
    if (refusals_ != 0 && !is_late) next_try_ = std::min(next_try_, refusal_counts_from());
    // Silence means that no peer was there, or that large frames do not pass. An end that gets more than one size
    // answers the first, which is the largest.
    const uint32_t most = probe_bytes();
    // The question goes first: hosts refuse so many frames a second and no more. While all is refused, one size is
    // enough.
    const bool refused = refusals_ != 0 && next_refusal_ == tries_;
    if (asks()) node_.outlet_.ask(peer_, {id_, tries_, nonce_});
    send_try(most, now);
    if (path_ == 0 && tries_ != 0 && !refused)
        for (const uint32_t step : kMtuSteps)
            if (step < most) send_try(step, now);
    ++tries_;
}

// Where nothing listens at the port of the host, no program waits, or a daemon is starting. So a refusal counts when it
// is one of a question that was asked so long after the first that was refused, and nothing has answered since. A
// program that has the request may accept it for longer, though no copy reaches it.
Time Link::refusal_counts_from() const {
    const Time grace = pending_ ? 2 * node_.tuning_.stale_incoming : node_.tuning_.refusal_grace;
    return std::max(refused_since_, node_.awake_since_) + grace;
}

// The host refuses, or it has said no-match and then nothing more: a requester without a deadline asks again then.
bool Link::is_left_without_match(Time now) const {
    if (state_ != LinkState::requesting) return false;
    if (is_refused() && late_refused_) return true;
    return no_match_since_ != kNoTime &&
           now - std::max(no_match_since_, node_.awake_since_) >= node_.tuning_.no_match_silence;
}

void Link::on_refused(const Question& q, Time now) {
    if (!asks() || q.nonce != nonce_ || q.number < next_refusal_ || q.number >= tries_) return;
    if (refusals_++ == 0) refused_since_ = now;
    next_refusal_ = q.number + 1;
    late_refused_ = late_refused_ || q.number >= late_question_;
}

void Link::clear_refusals() {
    refusals_ = 0;
    next_refusal_ = tries_;
    late_question_ = kNoQuestion;
    late_refused_ = false;
}

// Peer to peer: requests go to the host again, where another program may answer.
void Link::release_peer() {
    peer_known_ = pending_ = false;
    peer_nonce_ = 0;
    unproven_bytes_ = 0;
    peer_ = remote_.host;
}

// A host that keeps the request need not look for a listener.
void Link::withdraw() { node_.answer(Kind::withdraw, peer_, 0, 0, {nonce_, 0, 0}); }

void Link::fail(Status why, Time) {
    const Cookie cookie = cookie_;
    release();
    if (cookie != nullptr) node_.host_.on_failed(cookie, why);
}

void Link::become_connected(Time now) {
    if (path_ == 0) path_ = safe_bytes();  // data came before the confirm
    state_ = LinkState::connected;
    received_at_ = now;
    frames_since_ = now;
    sent_at_ = now;
    ack_due_ = kNoTime;
    const uint32_t most = std::min(node_.tuning_.max_frame, peer_max_frame_);
    out_.set_path(std::clamp(path_, kMinFrame, most), std::min(node_.tuning_.window, peer_window_));
    node_.host_.on_connected(cookie_, remote_traits_);
    wake();
}

void Link::on_accept(const Frame& f, const NicAddress& from, Time now) {
    Connect c;
    if (read_connect(f, &c) != Flaw::none || c.nonce != nonce_) {
        ++node_.counters_.wrong_state;
        return;
    }
    const bool mine = state_ == LinkState::requesting || state_ == LinkState::peering;
    if (mine) {
        arrived_ = std::max(arrived_, f.bytes);
        if (!peer_known_) {
            peer_ = from;
            learn(c, f.header.source);
        }
        peer_nonce_ = state_ == LinkState::requesting ? nonce_ : peer_nonce_;
        path_ = std::clamp<uint32_t>(c.arrived, kMinFrame, kMaxFrame);
        out_.note_credit(f.header.credit);
        become_connected(now);
    }
    // Peer to peer, its own request may not have come yet: its nonce is unknown, and it is answered when it
    // comes.
    if (is_connected() && peer_nonce_ != 0) {
        arrived_ = std::max(arrived_, f.bytes);
        received_at_ = now;
        send_confirm(now);
        rearm(now);
    }
}

void Link::on_confirm(const Frame& f, Time now) {
    const Answer a = read_answer(f);
    if (a.nonce != nonce_ || !peer_known_) {
        ++node_.counters_.wrong_state;
        return;
    }
    if (state_ == LinkState::accepting || state_ == LinkState::peering) {
        path_ = std::clamp<uint32_t>(a.arrived, kMinFrame, kMaxFrame);
        out_.note_credit(f.header.credit);
        become_connected(now);
    }
    if (!is_connected()) return;
    received_at_ = now;
    // Of several sizes of the accept a larger one may be confirmed later, or after data that came first.
    path_ = std::max<uint32_t>(path_, std::clamp<uint32_t>(a.arrived, kMinFrame, kMaxFrame));
    out_.raise_path(std::min({path_, node_.tuning_.max_frame, peer_max_frame_}));
}

void Link::on_answer(const Frame& f, Time now) {
    const Answer a = read_answer(f);
    if ((state_ != LinkState::requesting && state_ != LinkState::peering) || a.nonce != nonce_) {
        ++node_.counters_.wrong_state;
        return;
    }
    if (f.header.kind == Kind::reject) {
        const auto why = static_cast<Status>(a.reason);
        const bool mismatch =
            why == Status::mismatch_level || why == Status::mismatch_mtu || why == Status::mismatch_qos;
        return fail(mismatch ? why : Status::rejected, now);
    }
    path_ = std::max<uint32_t>(path_, std::clamp<uint32_t>(a.arrived, kMinFrame, kMaxFrame));
    clear_refusals();
    pending_ = f.header.kind == Kind::pending;
    if (pending_) {
        no_match_since_ = kNoTime;
        return;
    }
    if (no_match_since_ == kNoTime) {
        no_match_since_ = now;
        interval_ = node_.tuning_.first_try;
        next_try_ = now + interval_;
    }
    if (now - no_match_since_ >= node_.tuning_.no_match_grace) {
        // A program may have begun to listen a moment ago, and may have this request.
        if (state_ == LinkState::requesting) withdraw();
        return fail(Status::no_match, now);
    }
    rearm(now);
}

// The request goes again at once, with the cookie; a later cookie goes with the next copy. So an acceptor gets no more
// frames by more cookies.
void Link::on_prove(const Frame& f, Time now) {
    const Prove p = read_prove(f);
    if (state_ != LinkState::requesting || p.nonce != nonce_ || p.cookie == 0) {
        ++node_.counters_.wrong_state;
        return;
    }
    path_ = std::max<uint32_t>(path_, std::clamp<uint32_t>(p.arrived, kMinFrame, kMaxFrame));
    clear_refusals();
    no_match_since_ = kNoTime;
    const bool is_first = proof_ == 0;
    proof_ = p.cookie;
    if (is_first) send_try(probe_bytes(), now);
    rearm(now);
}

// An accept of a forged request ends unconfirmed.
void Link::note_unconfirmed(Time now) {
    if (state_ == LinkState::accepting && !proved_) node_.note_unconfirmed(now);
}

// ---- copies of requests

bool Link::is_same_attempt(const Connect& c, const NicAddress& from, LinkId source) const {
    return state_ != LinkState::closed && peer_known_ && (peer_nonce_ == c.nonce || peer_nonce_ == 0) &&
           peer_pass_ == c.pass && peer_ == from && peer_id_ == source;
}

// The request behind this link has come again.
bool Link::repeat_answer(const Request& copy, Time now) {
    if (!is_same_attempt(copy.fields, copy.from, copy.source)) return false;
    arrived_ = std::max(arrived_, copy.arrived);
    unproven_bytes_ += kMostAnswered * copy.arrived;
    proved_ |= copy.proved;
    peer_nonce_ = copy.fields.nonce;
    if (is_connected()) send_connect(Kind::accept, peer_id_, peer_nonce_, kSmallest, now);
    return true;
}

bool Link::matches_peer(const Connect& c, const NicAddress& from, LinkId source) const {
    const NicAddress host = node_.tuning_.ports ? named_host(from, c.local.host) : from;
    if (state_ != LinkState::peering || !(remote_.host == host)) return false;
    if (c.nonce == nonce_ && source == id_) return false;  // our own request, on a node that talks to itself
    return local_.same_discriminator(c.remote) && remote_.same_discriminator(c.local);
}

void Link::on_peer_request(const Frame& f, const Connect& c, const NicAddress& from, Time now) {
    const Status differs = c.traits.reliability != traits_.reliability     ? Status::mismatch_level
                           : c.traits.max_transfer != traits_.max_transfer ? Status::mismatch_mtu
                           : c.traits.qos != traits_.qos                   ? Status::mismatch_qos
                                                                           : Status::ok;
    if (differs != Status::ok) {
        node_.answer(Kind::reject, from, f.header.source, c.pass,
                     {c.nonce, static_cast<uint16_t>(differs), static_cast<uint16_t>(f.bytes)});
        return fail(differs, now);
    }
    arrived_ = std::max(arrived_, f.bytes);
    unproven_bytes_ += kMostAnswered * f.bytes - (peer_known_ ? 0 : kAnsweredBeside);
    peer_nonce_ = c.nonce;
    peer_ = from;
    received_at_ = now;
    learn(c, f.header.source);
    send_accept(probe_bytes(), now);
    rearm(now);
}

}  // namespace viaduct::wire
