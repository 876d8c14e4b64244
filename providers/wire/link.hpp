// SPDX-License-Identifier: BSD-2-Clause
// One end of a connection, from the first request to the last disconnect. The state machine of
// docs/wire-format.md: link_connect.cpp has the hand-shake, link.cpp life and end, Sender and Receiver the
// traffic. Used by Node.
#pragma once

#include <vipl.h>

#include <cstdint>

#include "providers/wire/node.hpp"
#include "providers/wire/receiver.hpp"
#include "providers/wire/sender.hpp"

namespace viaduct::wire {

enum class LinkState : uint8_t {
    closed,
    requesting,  // client: request sent, no accept yet
    peering,     // peer to peer: request sent, the two are not yet sure of each other
    accepting,   // server: accept sent, no confirm yet
    connected,
    closing,  // told the peer that it is over, no answer yet
};

class Link {
public:
    Link(Node&, uint32_t index);

    Node& node() { return node_; }
    LinkId id() const { return id_; }
    LinkState state() const { return state_; }
    Cookie cookie() const { return cookie_; }
    const ViTraits& traits() const { return traits_; }
    const NicAddress& peer() const { return peer_; }
    bool is_connected() const { return state_ == LinkState::connected; }
    // Since when frames of the peer have been coming without a long pause.
    Time frames_since() const { return frames_since_; }

    // ---- Node
    void claim(LinkId id, Cookie cookie);
    void request(LinkState, const EndAddress& local, const EndAddress& remote, const ViTraits&, Time deadline,
                 Time now);
    void accept(const Request&, const ViTraits&, Time now);
    void start(Time now);
    void disconnect(Time now);
    bool post(const Work&, Time now);
    // Checked of every frame before anything else: it comes from the right address, and shows that its sender
    // has been told of this link by its peer, or by itself.
    bool is_from_peer(const Header&, const NicAddress& from) const;
    // With a key: the tag of one that belongs to the connection is good.
    bool is_authentic(const Frame&);
    bool has_asked(const NicAddress& peer, uint64_t nonce) const {
        return (state_ == LinkState::requesting || state_ == LinkState::peering) && peer == peer_ && nonce == nonce_;
    }
    // The host has refused one of our questions whether anything listens at its port.
    void on_refused(const Question&, Time now);
    // The medium says that no process receives frames at `address`.
    void on_unreachable(const NicAddress& address, Time now);
    void on_frame(const Frame&, const NicAddress& from, Time now);
    // fast_path.cpp. False: a condition of the fast path does not hold, and nothing has changed.
    bool post_at_once(uint32_t tag, std::span<const std::byte> payload, const uint32_t* immediate, Time now);
    bool take_fast(const std::byte* frame, uint32_t length, const NicAddress& from, Time now);
    void on_peer_request(const Frame&, const Connect&, const NicAddress& from, Time now);
    void on_time(Time now);
    void flush(Time now);
    bool is_same_attempt(const Connect&, const NicAddress& from, LinkId source) const;
    bool matches_peer(const Connect&, const NicAddress& from, LinkId source) const;
    // Peering, and no answer has come yet.
    bool is_free_for_peer() const { return state_ == LinkState::peering && !peer_known_; }
    bool is_unreliable_end_of(const Header& h, const NicAddress& from) const {
        return is_connected() && traits_.reliability == VIP_SERVICE_UNRELIABLE && !node_.is_keyed() &&
               is_from_peer(h, from);
    }
    bool repeat_answer(const Request&, Time now);
    void announce_close(Time now);
    void release();
    void fail(Status, Time now);
    void report(LinkReport*) const;

    // ---- Sender and Receiver
    // Header of a frame to the peer, acknowledging what has come.
    Header header(Kind, uint32_t length);
    std::byte* begin_frame(uint32_t bytes);
    // The end of the payload may lie elsewhere (Outlet::end_zero_copy).
    void end_frame(std::byte* frame, const Header&, Time now, std::span<const Piece> tail = {});
    void note_said(uint32_t bytes, Time now);  // a frame was sent
    void want_ack(Time due, Time now);
    void wake();  // has something to send
    // The connection is over; with `tell_peer` a disconnect carries `reason`.
    void end(Ended why, bool tell_peer, Reason reason, uint32_t message, Time now);
    Sender& out() { return out_; }
    Receiver& in() { return in_; }

private:
    void drop_ack() {
        ack_due_ = kNoTime;
        node_.deadlines_.drop_soon(index_);
    }
    void arm(Time due);
    void rearm(Time now);
    Time own_deadline() const;

    // link_connect.cpp
    uint32_t probe_bytes() const;
    uint32_t safe_bytes() const;
    void send_connect(Kind, LinkId destination, uint64_t nonce, uint32_t padded, Time now);
    void send_accept(uint32_t padded, Time now);
    void send_confirm(Time now);
    void send_try(uint32_t padded, Time now);
    void try_again(Time now);
    Time accept_timeout() const;
    void on_accept(const Frame&, const NicAddress& from, Time now);
    void on_confirm(const Frame&, Time now);
    void on_answer(const Frame&, Time now);
    void on_prove(const Frame&, Time now);
    void note_unconfirmed(Time now);
    void become_connected(Time now);
    void learn(const Connect&, LinkId source);
    void withdraw();
    bool asks() const { return state_ == LinkState::requesting && !node_.is_keyed(); }
    bool is_refused() const { return refusals_ >= node_.tuning_.refusals; }
    Time refusal_counts_from() const;
    bool is_left_without_match(Time now) const;
    void clear_refusals();
    void release_peer();
    void reset_peer();

    // link.cpp
    void on_connected_frame(const Frame&, Time now);
    void on_disconnect(const Frame&, Time now);
    void on_reset(const Frame&, Time now);
    Header own_numbers() const;
    void send_selective(Kind, Time now);
    void close(Reason, uint32_t message, Time now);
    void send_disconnect(Time now);
    void on_life(Time now);
    void check_unreachable();
    void choose_quiet();

    Node& node_;
    const uint32_t index_;
    LinkId id_ = 0;
    Cookie cookie_ = nullptr;
    LinkState state_ = LinkState::closed;
    NicAddress peer_;  // where its frames come from; until it is known, the host that requests go to
    LinkId peer_id_ = 0;
    // The passes of incoming and outgoing frames. The fast path takes frames with the first one; with a key
    // that is a number that is never sent, because a pass proves nothing there.
    uint64_t fast_pass_ = 0, pass_ = 0, peer_pass_ = 0;
    ViTraits traits_, remote_traits_;
    EndAddress local_, remote_;

    // hand-shake
    uint64_t nonce_ = 0, peer_nonce_ = 0;  // of our request, of the peer's
    uint32_t first_sequence_ = 0;
    uint32_t tries_ = 0;
    uint32_t arrived_ = 0;         // size of the largest hand-shake frame that came from the peer
    uint64_t unproven_bytes_ = 0;  // bytes that accepts may take until a frame shows that the peer gets ours
    bool proved_ = false;          // the request has shown that the peer gets our frames
    uint64_t proof_ = 0;           // cookie that our request has to show; 0: none
    uint32_t path_ = 0;            // size of ours that is known to have arrived; 0: not yet
    uint32_t peer_max_frame_ = kMaxFrame, peer_window_ = kMostInFlight;
    bool peer_known_ = false;
    bool pending_ = false;  // a program has our request, and has not decided
    Time deadline_ = kNoTime, next_try_ = kNoTime, interval_ = 0, no_match_since_ = kNoTime;
    static constexpr uint32_t kNoQuestion = UINT32_MAX;
    // Questions that the peer's host has refused since it last answered: how many, since when, and which may be the
    // next; which one was the first to be asked when refusals count, and whether it or a later one was refused.
    uint32_t refusals_ = 0, next_refusal_ = 0, late_question_ = kNoQuestion;
    bool late_refused_ = false;
    Time refused_since_ = 0;

    // life
    Time received_at_ = 0, sent_at_ = 0, ack_due_ = kNoTime;
    // After so much silence the peer is dead: as the hand-shake says, and shorter while a report that it is unreachable
    // counts, which is until the next frame of the peer.
    Time silence_ = 0, full_silence_ = 0, unreachable_at_ = kNoTime;
    Time frames_since_ = 0;
    Time quiet_ = 0;       // so long after it has said something a link says that it lives
    bool parted_ = false;  // the peer has disconnected before start(): what is held comes first
    Reason reason_ = Reason::disconnected;
    uint32_t reason_message_ = 0;
    Finding finding_;  // goes with the reason

    // With a key.
    Key key_out_, key_in_;
    WholeSequence whole_out_, whole_in_;

    Sender out_;
    Receiver in_;
};

inline void Link::note_said(uint32_t bytes, Time now) {
    ++node_.counters_.frames_out;
    node_.counters_.bytes_out += bytes;
    sent_at_ = now;
    // Every frame acknowledges; only a gap takes a frame of its own.
    if (is_connected() && !in_.has_early()) drop_ack();
}

// A timer that comes too early finds nothing to do and is set anew: so most frames move no timer.
inline void Link::arm(Time due) {
    if (due < node_.deadlines_.of(index_)) node_.deadlines_.set(index_, due);
}

inline Link* Node::find(LinkId id) const {
    const uint32_t index = slot_of(id);
    if (index >= tuning_.max_links) return nullptr;
    const Slot& slot = slots_[index];
    return slot.in_use && slot.link->id() == id ? slot.link.get() : nullptr;
}

}  // namespace viaduct::wire
