// SPDX-License-Identifier: BSD-2-Clause
// What a node of VI-over-packets needs from its surroundings: an Outlet for frames and a Host for messages.
// An Ethernet port, a UDP socket and a test's simulated wire are outlets; a provider or a test's model is the
// host. Every call is made by the thread that drives the node, from inside input, advance, flush, post, start
// or listen; none of them may call the node back, except where it says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/clock/limits.hpp"
#include "providers/wire/auth.hpp"
#include "providers/wire/finding.hpp"
#include "providers/wire/format.hpp"
#include "viaduct/types.hpp"

namespace viaduct::wire {

using Time = int64_t;  // nanoseconds of any clock that does not go back
inline constexpr Time kNoTime = INT64_MAX;

// A connection or an attempt at one: index and generation, never 0, never the same again for a long time.
using LinkId = uint32_t;
// A request whose answer is awaited.
using IncomingId = uint64_t;
// What the host calls its end of a connection.
using Cookie = void*;

// What a host is asked whether anything listens at a port: the number of the question within its attempt, and what
// names the attempt, with bits that no host can guess without having seen them.
struct Question {
    LinkId link = 0;
    uint32_t number = 0;
    uint64_t nonce = 0;
};

class Outlet {
public:
    // Room for a frame of `bytes` (at most max_frame), or null while the wire takes no more. What the medium
    // puts in front and behind is the outlet's business.
    virtual std::byte* begin_frame(uint32_t bytes) = 0;
    // Sends what begin_frame gave; exactly one call for each of end_frame and end_zero_copy.
    virtual void end_frame(std::byte* frame, uint32_t bytes, const NicAddress& to) = 0;

    // The least payload that is better read where it lies than copied into a frame; UINT32_MAX: none is.
    uint32_t zero_copy_from() const { return zero_copy_from_; }
    // Sends `bytes` of the frame and the memory in `tail` behind them: at most kMostPieces, max_frame
    // together. The outlet releases that memory before the driver of the node releases its lock, so that it
    // cannot go away meanwhile. Only called when zero_copy_from() allows it.
    virtual void end_zero_copy(std::byte*, uint32_t, std::span<const Piece>, const NicAddress&) {}

    // Asks the host of that address whether anything listens at its port. It answers only where nothing does, and
    // where the medium carries that: the question is then one of next_refused(). Called for requests of client and
    // server, and never with a key: a refusal carries no tag, and any host that sees the question can make one.
    virtual void ask(const NicAddress&, const Question&) {}
    // A question that a host has refused, each once. False: none more.
    virtual bool next_refused(Question*) { return false; }

    // An address at which no process receives frames, as the medium says. A hint: other hosts can forge it. Each
    // report once. False: none more.
    virtual bool next_unreachable(NicAddress*) { return false; }

    // Frames wait for a process that should forward them and seems to have no processor: what comes for us
    // waits there as well, and no peer counts as silent meanwhile. Called when timers are due.
    virtual bool stands_still(Time) { return false; }

protected:
    ~Outlet() = default;
    uint32_t zero_copy_from_ = UINT32_MAX;
};

// The host's result of something that the peer asked for.
enum class HostResult : uint8_t {
    ok,
    no_receive,     // no receive is posted
    bad_receive,    // the receive is malformed, protected or too short
    not_permitted,  // memory or VI does not allow it
};

// How work ended. Reported once each, in posting order.
enum class Outcome : uint8_t {
    ok,
    bad_source,       // our own memory went away under it
    receive_refused,  // the peer had no receive for it, or a bad one
    not_permitted,    // the peer refused the target
    gave_up,          // no acknowledgement in time
};

// Why a connection is over. Reported once, after the work it decided.
enum class Ended : uint8_t {
    by_peer,       // it disconnected
    lost,          // it has ended, or was silent too long
    gave_up,       // no acknowledgement in time
    refused_ours,  // it refused something of ours; the outcome has said so
    refused_here,  // the host refused something of the peer's
    protocol,      // the peer sent what no peer sends
    bad_source,    // see Outcome
};

const char* name_of(Ended);

enum class Operation : uint8_t { send, write, read, fetch_add, compare_swap };

// One descriptor's worth of work.
struct Work {
    Operation operation = Operation::send;
    bool has_immediate = false;
    bool fence = false;  // not begun before all earlier reads and atomics are done (spec/descriptors 2.5)
    uint8_t width = 8;   // atomics: 4 or 8
    uint32_t tag = 0;    // the host's own name for it
    uint32_t total = 0;
    uint32_t immediate = 0;
    uint32_t handle = 0;   // of the target region
    uint64_t address = 0;  // of the target
    uint64_t operand = 0;
    uint64_t compare = 0;
};

// Why a frame is dropped as not authentic.
enum class AuthFailure : uint8_t {
    no_tag,     // this end has a key, the frame no tag
    other_key,  // its tag is not what this end's key makes of it
    no_key,     // it has a tag, this end no key
};

class Host {
public:
    // ---- our own work
    // Copies `n` bytes at `offset` of that work's memory; again for every retransmission. False: it cannot be
    // read.
    virtual bool read_source(Cookie, uint32_t tag, uint32_t offset, std::byte* to, uint32_t n) = 0;
    // Data of a read (or the old value of an atomic, in the host's byte order) arrives, in rising order.
    virtual bool place_result(Cookie, uint32_t tag, uint32_t offset, const std::byte* from, uint32_t n) = 0;
    // Where those bytes lie, in at most kMostPieces; how many pieces, or 0: read_source has to copy them. They
    // are read before the call that drives the node is over, and once; retransmissions are copied, so that
    // memory that another thread changes meanwhile costs one frame and no more.
    virtual uint32_t lend_source(Cookie, uint32_t, uint32_t, uint32_t, Piece*) { return 0; }
    virtual void on_finished(Cookie, uint32_t tag, Outcome) = 0;

    // ---- the peer's messages, one at a time: begin, place in rising order, then end or abandon
    virtual HostResult begin_message(Cookie, uint32_t total) = 0;
    virtual void place_message(Cookie, uint32_t offset, const std::byte* from, uint32_t n) = 0;
    virtual void end_message(Cookie, uint32_t total, const uint32_t* immediate) = 0;
    // The rest of it is lost (Unreliable): the receive is for the next one.
    virtual void abandon_message(Cookie) = 0;

    // All of that at once, for a message that came in one frame. What it answers is what begin_message would.
    virtual HostResult whole_message(Cookie cookie, const std::byte* from, uint32_t total,
                                     const uint32_t* immediate) {
        const HostResult result = begin_message(cookie, total);
        if (result != HostResult::ok) return result;
        if (total != 0) place_message(cookie, 0, from, total);
        end_message(cookie, total, immediate);
        return HostResult::ok;
    }

    // ---- the peer's RDMA writes, the same way; with immediate data they take a receive
    virtual HostResult begin_write(Cookie, uint32_t handle, uint64_t address, uint32_t total,
                                   const uint32_t* immediate) = 0;
    // Refused: with immediate data the receive that was taken has got the error.
    virtual HostResult place_write(Cookie, uint32_t handle, uint64_t address, const std::byte* from,
                                   uint32_t n, const uint32_t* immediate) = 0;
    virtual void end_write(Cookie, uint32_t total, const uint32_t* immediate) = 0;
    virtual void abandon_write(Cookie, const uint32_t* immediate) = 0;
    // Unreliable: a frame of one has arrived damaged, as far as its header can be read. Nothing was
    // written.
    virtual void on_damaged_write(Cookie) {}

    // ---- the peer's reads and atomics
    // Permission for the whole range; then pieces are read, again for retransmissions.
    virtual HostResult begin_read(Cookie, uint32_t handle, uint64_t address, uint32_t total) = 0;
    virtual HostResult read_memory(Cookie, uint32_t handle, uint64_t address, std::byte* to, uint32_t n) = 0;
    virtual HostResult atomic(Cookie, const Work&, uint64_t* old) = 0;

    // How many receives have been posted since the connection began.
    virtual uint32_t receives_posted(Cookie) = 0;

    // ---- connecting
    // A request for a listener, which is used up by it. Answer by Node::accept or Node::reject, now or later.
    virtual void on_incoming(Cookie listener, IncomingId, const EndAddress& remote, const ViTraits&) = 0;
    // A request has come for the listener's discriminator and does not end its wait: the sender has to prove its
    // address first, the request is not authentic, or too many requests wait for an answer. The port may have used up
    // its filter for the listener by passing the request on.
    virtual void on_request_refused(Cookie) {}
    // The attempt has succeeded. Nothing is delivered before Node::start.
    virtual void on_connected(Cookie, const ViTraits& remote) = 0;
    // It has failed; the link is closed. timeout, rejected, no_match, mismatch_*.
    virtual void on_failed(Cookie, Status) = 0;
    // This end breaks or ends the connection: the finding that the disconnect carries to the peer.
    virtual Finding finding(Cookie) { return {}; }
    // The finding in the peer's disconnect. Called before the results and the end that the disconnect leads to.
    virtual void on_finding(Cookie, const Finding&) {}
    // The connection is over; only Node::disconnect is of use now.
    virtual void on_ended(Cookie, Ended) = 0;

    // ---- for statistics: what happens silently (Counters has the same for all links together)
    virtual void on_retransmitted(Cookie) {}  // a frame
    virtual void on_dropped(Cookie) {}        // a frame that had come before, or a message that was lost (Unreliable)
    // A host sends another version of the format, or frames that are not authentic. Reported now and then, not for
    // each.
    virtual void on_other_version(const NicAddress&, uint8_t) {}
    virtual void on_auth_failure(const NicAddress&, AuthFailure) {}

protected:
    ~Host() = default;
};

// Knobs of a node. The defaults suit a LAN and processes that may wait for a processor for some milliseconds.
struct Tuning {
    uint32_t max_frame = 1460;  // what the outlet takes
    uint32_t max_links = 1024;
    uint32_t first_link = 0;  // link ids have indices from here on: nodes that share an address differ in it
    uint32_t queue_depth = 1024;   // work posted and not finished, per link; a power of two
    uint32_t window = 64;          // sequenced frames in flight at most, up to kMostInFlight
    uint32_t reorder_frames = 256;    // frames that came too early, for all links together
    uint32_t pending_connects = 128;  // without a listener; 0: the port keeps them; at most 1024
    uint32_t max_reads = 16;       // reads and atomics in flight per link and direction, at most kMaxReads
    Time ack_delay = 5'000;        // an acknowledgement waits so long for data to ride on
    Time ack_delay_max = 1'000'000;
    Time first_timeout = 20'000'000;  // before anything was measured
    Time min_timeout = 4'000'000;     // a peer without a processor answers after 4 ms and more
    Time max_timeout = 200'000'000;
    // Without any progress while frames of the peer come, for so long: the connection is broken.
    Time give_up = unstretched_ns(TimeLimit::wire_give_up);
    Time keep_alive = 100'000'000;  // a quiet side says that it lives
    // Nothing has come from the peer for so long: it is dead. For a peer that has said that its death is not reported,
    // and for one that the outlet has reported as unreachable since its last frame.
    Time silence = unstretched_ns(TimeLimit::wire_silence);
    // The same for all other peers. A process that a debugger or a busy host stops is silent, too. It also takes the
    // place of shorter limits of a connection that is being made.
    Time attended_silence = unstretched_ns(TimeLimit::wire_attended_silence);
    bool attended = false;        // when this process dies, its host or another process reports that to our peers
    Time first_try = 10'000'000;  // connecting: between two tries, doubling up to max_try
    Time max_try = 100'000'000;
    // A peer that answers no-match for so long has no waiter (docs/decisions.md), and so has one that answers no-match
    // and then nothing for so long,
    Time no_match_grace = unstretched_ns(TimeLimit::wire_no_match_grace);
    Time no_match_silence = unstretched_ns(TimeLimit::wire_no_match_silence);
    // and a host whose port refuses so many questions, the last one so long after the first: a daemon may be starting
    // meanwhile.
    uint32_t refusals = 2;
    Time refusal_grace = unstretched_ns(TimeLimit::wire_refusal_grace);
    // A request that is not repeated for so long is handed out no more; its requester has given up.
    Time request_silence = unstretched_ns(TimeLimit::wire_request_silence);
    Time stale_incoming = unstretched_ns(TimeLimit::wire_stale_incoming);
    Time accept_timeout = unstretched_ns(TimeLimit::wire_accept);
    Time close_linger = unstretched_ns(TimeLimit::wire_close);  // how long a disconnect is repeated
    // Two accepts of requesters without a proof come to nothing within this time: then all requesters have to show a
    // proof for as long.
    Time proof_demand = unstretched_ns(TimeLimit::wire_proof_demand);
    Time cookie_life = 10'000'000'000;  // after it the secret of the cookies is replaced
    // Answers to frames that belong to no connection, and challenges: so many a second, and at once.
    uint32_t answers_per_second = 100, answers_at_once = 20;
    Time tell_again = 10'000'000'000;  // frames of unknown hosts are reported so often at most
    uint64_t seed = 1;                 // of times
    // Addresses are IPv4 and port (udp_address): requests go to a port of the host, and its processes answer from ports
    // of their own.
    bool ports = false;
    // Bits that cannot be guessed, of passes, nonces, first sequence numbers and generations; null: they follow
    // from the seed, for tests.
    uint64_t (*draw)() = nullptr;
    // With a key nothing is acted on or answered that its peer has not tagged with the same one (auth.hpp).
    std::optional<Key> key;

    // The driver of a node in a real process calls it once; tests with a clock of their own do not.
    void stretch_limits(int factor) {
        for (Time* limit :
             {&give_up, &silence, &attended_silence, &no_match_grace, &no_match_silence, &refusal_grace,
              &request_silence, &stale_incoming, &accept_timeout, &close_linger, &proof_demand})
            *limit *= factor;
    }
};

inline constexpr uint32_t kMaxReads = 64;

// Every silent path has a number; read by tools, written by the driving thread.
struct Counters {
    uint64_t frames_in = 0, frames_out = 0, bytes_in = 0, bytes_out = 0;
    uint64_t zero_copied = 0;  // frames out whose payload was not copied
    uint64_t not_a_frame = 0, bad_check = 0, unknown_link = 0, wrong_peer = 0, wrong_state = 0;
    uint64_t duplicates = 0, early = 0, reorder_full = 0, beyond_window = 0, protocol_errors = 0;
    uint64_t retransmitted = 0, timeouts = 0, losses_seen = 0, acks_out = 0, keep_alives_out = 0;
    uint64_t messages_lost = 0;  // Unreliable: seen by the receiver
    uint64_t resets_out = 0, resets_in = 0, requests_ignored = 0, outlet_full = 0;
    uint64_t challenges = 0;       // resets out of sequence, asked back
    uint64_t answers_withheld = 0;  // by the limit
    uint64_t proofs_asked = 0;      // of requesters
    uint64_t not_authentic = 0, other_version = 0;
};

}  // namespace viaduct::wire
