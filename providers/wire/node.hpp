// SPDX-License-Identifier: BSD-2-Clause
// A node: all connections of one network address. It is a state machine and nothing else: its owner
// brings frames (input), the time (advance) and work (post), and gets frames (Outlet) and events (Host) back.
// One thread at a time; nothing blocks; memory is taken when a node is made and when a link is used for the
// first time.
//
//   Ethernet port:  poll { for each frame: node.input(frame, source MAC, now); } node.advance(now);
//   node.flush(now);
//                   sleep until node.next_deadline() or a frame.
//   UDP link:       the same with recvmsg, and the six bytes of an address are IPv4 address and port.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "providers/wire/answer_rate.hpp"
#include "providers/wire/deadlines.hpp"
#include "providers/wire/format.hpp"
#include "providers/wire/host.hpp"
#include "providers/wire/pending_connects.hpp"
#include "providers/wire/proof_demand.hpp"
#include "providers/wire/reorder_buffer.hpp"
#include "providers/wire/request_cookies.hpp"

namespace viaduct::wire {

class Link;

// The state of a link for tools and tests.
struct LinkReport {
    NicAddress peer;
    uint32_t state = 0;  // LinkState
    uint32_t send_frame = 0;
    uint32_t window = 0, in_flight = 0;
    uint32_t work_open = 0;
    Time round_trip = 0;
    Time received_at = 0;
    Time progressed = 0;  // when the peer has acknowledged something, or what is in flight began
    Time awake = 0;       // since when silence counts
};

class Node {
public:
    Node(const Tuning&, const NicAddress& own, Outlet&, Host&);
    ~Node();
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;

    // ---- connecting
    // Waits for one request to `local`'s discriminator; first come, first served. 0: too many listeners. The
    // host is told of a request that has been kept before this returns.
    uint32_t listen(const EndAddress& local, Cookie, Time now);
    void unlisten(uint32_t listener);
    // Attempts: the host is told connected or failed. 0: no link is free. kNoTime waits for ever.
    LinkId request(Cookie, const EndAddress& local, const EndAddress& remote, const ViTraits&, Time deadline,
                   Time now);
    LinkId peer_request(Cookie, const EndAddress& local, const EndAddress& remote, const ViTraits&,
                        Time deadline, Time now);
    // 0: the requester has left, or no link is free (*why).
    LinkId accept(IncomingId, Cookie, const ViTraits&, Time now, Status* why);
    void reject(IncomingId, Time now);
    // False: its requester has taken it back, or has not repeated it for so long that it has left. It is
    // dropped then; should the requester live after all, its next copy is a new request.
    bool still_waits(IncomingId, Time now);
    // The host is ready for what arrives: call once after connected.
    void start(LinkId, Time now);
    // Ends an attempt or a connection; no upcall for it afterwards. The peer is told for a while.
    void disconnect(LinkId, Time now);

    // ---- working
    // False: not connected, or queue_depth pieces of work are open.
    bool post(LinkId, const Work&, Time now);
    // The fast path of a message that fits a frame, lies in one piece and may be read now; Host::read_source
    // is called for it when it is sent again. False: nothing has happened, and post has to be called.
    bool post_at_once(LinkId, uint32_t tag, std::span<const std::byte> payload, const uint32_t* immediate,
                      Time now);

    // ---- driving
    void input(std::span<const std::byte> frame, const NicAddress& from, Time now);
    void advance(Time now);  // timers that are due
    void flush(Time now);    // sends what can be sent: call after a batch of input and when the wire takes
                             // frames again
    Time next_deadline() const { return deadlines_.earliest(); }
    bool wants_flush() const { return !ready_.empty(); }
    // Tells every peer that all is over; for a node that is about to end. A peer that is not told
    // takes what it has sent for lost, though it may have come: drive the node until closes_open() is 0, or
    // for as long as there is time.
    void close_links(Time now);
    // Ended connections which the peer has not confirmed yet.
    uint32_t closes_open() const { return closes_open_; }

    const NicAddress& address() const { return own_; }
    const Tuning& tuning() const { return tuning_; }
    const Counters& counters() const { return counters_; }
    bool report(LinkId, LinkReport*) const;
    uint32_t links_in_use() const { return max_links() - static_cast<uint32_t>(free_.size()); }
    uint32_t max_links() const { return static_cast<uint32_t>(slots_.size()); }
    size_t frames_early() const { return tuning_.reorder_frames - reorder_.free(); }
    size_t connects_pending() const { return pending_.size(); }

private:
    friend class Link;
    friend class Sender;
    friend class Receiver;

    struct Slot {
        uint32_t generation = 0;
        std::unique_ptr<Link> link;
        bool in_use = false;
        bool ready = false;  // is in ready_
    };
    struct Listener {
        uint32_t id = 0;
        uint64_t order = 0;
        EndAddress local;
        Cookie cookie = nullptr;
    };
    // A request that the host has been told of.
    struct Incoming {
        IncomingId id = 0;
        Request request;
        Time received_at = 0;
        bool withdrawn = false;  // its requester has said that it waits no longer
    };
    // Requests that are decided: late copies of them are not new ones.
    struct Decided {
        uint64_t nonce = 0;
        NicAddress from;
        bool rejected = false;
    };

    uint32_t slot_of(LinkId id) const { return (id & 0xFFFF) - tuning_.first_link; }
    Link* find(LinkId) const;  // link.hpp
    bool take_fast(std::span<const std::byte> frame, const NicAddress& from, Time now);
    Link* take_link(Cookie);
    void free_link(Link&);
    void make_ready(Link&);
    uint64_t random();
    uint64_t draw() { return tuning_.draw != nullptr ? tuning_.draw() : random(); }
    bool is_keyed() const { return tuning_.key.has_value(); }
    bool may_answer(Time now);
    void seal_own(std::byte* frame, Header) const;
    bool comes_from_peer(const Frame&, const NicAddress& from, Time now);
    void on_strange_version(std::span<const std::byte>, const NicAddress& from, Time now);
    void on_version_answer(std::span<const std::byte>, const NicAddress& from, Time now);

    void on_request(const Frame&, const NicAddress& from, Time now);
    bool has_room_for_incoming(Time now);
    void tell_host(Cookie listener, const Request&, Time now);
    void tell_of_refused(const Connect& request);
    void on_forged(const Frame&);
    void ask_for_proof(const Request&, Time now);
    void note_unconfirmed(Time now);
    void on_withdraw(const Frame&, const NicAddress& from);
    void on_peer_request(const Frame&, const NicAddress& from, Time now);
    void on_unknown(const Frame&, const NicAddress& from, Time now);
    void on_damaged_write(const Header&, const NicAddress& from);
    void take_refusals(Time now);
    void take_unreachable(Time now);
    void answer(Kind, const NicAddress& to, LinkId destination, uint64_t pass, const Answer&);
    void bare(Kind, const NicAddress& to, const Header&);
    void remember(uint64_t nonce, const NicAddress& from, bool rejected);
    Incoming* find_incoming(IncomingId);

    Tuning tuning_;
    NicAddress own_;
    Outlet& outlet_;
    Host& host_;
    Counters counters_;
    uint64_t random_state_;
    Deadlines deadlines_;
    ReorderBuffer reorder_;
    std::vector<Slot> slots_;
    std::vector<uint32_t> free_;
    std::vector<uint32_t> ready_, being_flushed_;
    uint32_t closes_open_ = 0;
    std::vector<Listener> listeners_;
    PendingConnects pending_;
    std::vector<Incoming> incomings_;
    std::array<Decided, 128> decided_{};
    uint32_t next_decided_ = 0;
    uint64_t next_listener_ = 1;
    // Since when this process, and the one that carries its frames, have been running without a pause in which peers
    // could seem silent.
    Time awake_since_ = 0, last_advance_ = 0;
    Time ask_unreachable_at_ = 0;  // when the outlet is asked again for unreachable addresses
    AnswerRate answers_;
    ProofDemand proof_demand_;
    RequestCookies cookies_;
    Time next_version_report_ = 0, next_auth_failure_report_ = 0;  // the host is told of one again then
};

}  // namespace viaduct::wire
