// SPDX-License-Identifier: BSD-2-Clause
// How the parts of the data path call each other. Every function says which lock it wants: [S] vi.send.lock,
// [R] vi.recv.lock.
#pragma once

#include <viaduct/ext.h>

#include "providers/paramnet/endpoint.hpp"

namespace viaduct::paramnet {

enum class Step : uint8_t {
    done,     // go on with the next
    waits,    // no room, or not yet time: stays in the queue
    stopped,  // the connection is ending
};

inline bool reliable(const Endpoint& ep) { return ep.vi->traits.reliability != VIP_SERVICE_UNRELIABLE; }

// A lane full, or a message not taken, for so long: the peer's application computes.
inline constexpr int64_t kStuckNs = 1'000'000;
inline constexpr uint32_t kLooksPerTime = 64;  // attempts between two looks at the clock

// lane_send.cpp [S]
void push_sends(Endpoint&);
// The next line is free; false: no room (or nonsense was found and the connection marked broken).
bool reserve_line(Endpoint&);
// Room for `bytes` in the block area: where, and the unit counter after it.
bool reserve_units(Endpoint&, uint32_t bytes, uint32_t* unit, uint32_t* unit_after);
// The peer has a receive posted for one more message. waits: it has not started; stopped: none is posted.
Step reserve_receive(Endpoint&);
// Publishes the line at tx.next, whose other fields have been written, and tells the peer.
void publish_line(Endpoint&, uint32_t operation, uint32_t flags, uint32_t length);
inline Line& next_line(Endpoint& ep) { return ep.tx.lines[ep.tx.next & (kLines - 1)]; }
// Begins a message in fragments.
void begin_message(Endpoint&, const VIP_DESCRIPTOR*, uint32_t operation, uint32_t flags, uint32_t total);

// How many receives we have posted; every message inside a line tells it.
inline uint32_t own_posted(const Tx& tx) {
    return static_cast<uint32_t>(tx.own->posted.load(std::memory_order_relaxed));
}

// More receives of the peer are known from a line of its own than from its counter. A wrong count harms the
// peer's own receives only.
inline bool take_heard_credits(Endpoint& ep) {
    const uint32_t heard = ep.peer_posted.load(std::memory_order_relaxed);
    if (static_cast<int32_t>(heard - ep.tx.credits) <= 0) return false;
    ep.tx.credits = heard;
    return true;
}

// send_finish.cpp [S]
void collect_acks(Endpoint&);
// The descriptor at that position of the send queue (taken) is decided: completes it in its turn.
void finish(Endpoint&, uint32_t position, uint32_t status, uint32_t length, After);
// The same, once the peer has acknowledged the line with kFlagAck just published.
void finish_on_ack(Endpoint&, uint32_t position, uint32_t status, uint32_t length);
// A message that needs a receive met none (vipl-semantics §6.2).
void finish_without_receive(Endpoint&, uint32_t position, uint32_t operation, uint32_t length);
// Tells the peer's progress thread of an error that concerns it.
void tell_event(Endpoint&, EventKind);

// send_network.cpp [S]: what the modelled network does with the head message. done: it arrives. waits: not
// yet. stopped: it does not arrive, and its descriptor has been decided.
Step pass_network(Endpoint&, VIP_DESCRIPTOR*, uint32_t total);
// The head message is no longer on its way: what the network has done with it does not count for the next.
void leave_network(Endpoint&);
// Where the link takes its time: notes when the descriptors were posted that have come since the last call.
void stamp_posts(Endpoint&);

// rdma.cpp [S]: the descriptor at the head, checked, `total` bytes
Step begin_write(Endpoint&, VIP_DESCRIPTOR*, uint32_t total);
Step begin_read(Endpoint&, VIP_DESCRIPTOR*, uint32_t total);
// Fetch-add and compare-swap (viaduct/ext.h), by the initiator alone.
Step begin_atomic(Endpoint&, VIP_DESCRIPTOR*, uint32_t total);
// The hot path: the one new descriptor writes one segment into a region of the peer's arena that was met
// before. False: anything unusual, and the descriptor has not been taken (bytes may have been written: they
// will be again). Only while Tx::fast.
bool write_direct(Endpoint&, ViCore&);
Status write_now(ViCore&, const VIPX_WRITE&);
Status mapped_at(ViCore&, uint32_t handle, uint64_t address, uint64_t bytes, void** here);
// What the initiator of a refused write or read sees, and what the target is told (vipl-semantics §6.2, §7).
void finish_refused_write(Endpoint&, uint32_t position, uint32_t total, bool told_by_line);

// rdma_served.cpp
Step begin_served_write(Endpoint&, VIP_DESCRIPTOR*, uint32_t total);  // [S]
Step begin_served_read(Endpoint&, VIP_DESCRIPTOR*, uint32_t total);   // [S]
Step push_reply(Endpoint&);                                           // [S]
bool take_served_write(Endpoint&, const Line&, uint32_t meta);        // [R]
bool place_served(Endpoint&, const std::byte* from, uint32_t n);      // [R]
bool finish_served_write(Endpoint&);                                  // [R]
bool take_read_request(Endpoint&, const Line&);                       // [R]
bool take_read_data(Endpoint&, const Line&, uint32_t meta);           // [R]

// large.cpp
void install_ways(Endpoint&);  // [S] once the peer has started
void install_ways(Endpoint&, uint32_t pull_from);
// A message that does not go inside a line; its receive is reserved.
Step begin_long(Endpoint&, VIP_DESCRIPTOR*, uint32_t flags, uint32_t total);  // [S]
// A message of one segment of up to kOnePiece goes into the blocks at once, and begin_long has nothing else
// to do for it.
bool goes_in_one_piece(Endpoint&, uint32_t handle, uint32_t length);  // [S]
bool take_pull(Endpoint&, const Line&, uint32_t meta);                // [R]

// relay.cpp: messages that were to be fetched, by a receiver that may not
bool begin_relay(Endpoint&, uint32_t total, uint32_t flags, uint32_t immediate);  // [R] false: not yet
bool take_relayed(Endpoint&);                                                     // [R] the same
bool relay_is_asked_for(const Endpoint&);
void hand_over(Endpoint&);  // [RS]

// timed.cpp: how long a message takes (ways.hpp)
uint32_t mark_timed(Line&, uint32_t trial, int64_t* begun);  // [S] begins now; the flag to publish it with
void note_sent(Endpoint&, const OutgoingMessage&);           // [S] all of it is in the ring
void hear_time(Endpoint&);                                   // [S] what the receiver has told
TimedMark take_mark(const Endpoint&, const Line&);           // [R] its first line is taken
void tell_time(Endpoint&, const TimedMark&);                 // [R] it has arrived

// Sends from this length up are pulled if they lie in the arena: those of one fragment have a short way of
// their own.
inline constexpr uint32_t kArenaPullFrom = kMinFragment + 1;
inline constexpr uint32_t kPollBudget = 64;  // lines taken by one poll

// lane_receive.cpp [R]
// Takes at most `budget` lines; true when there may be more.
bool take_lines(Endpoint&, uint32_t budget);
// The same by the progress thread, for a program that does not look.
bool serve_lines(Endpoint&, uint32_t budget);
// All that the lane holds, by an end that is about to leave, also when something other than a line has broken
// the connection. Both queue locks held, Endpoint::servicing set.
void take_last_lines(Endpoint&);
// A poll: takes what has arrived and reminds of what it leaves.
void take_arrivals(Endpoint&);

// receive_message.cpp [R]
// Whatever is not short and usual. False: the line was not taken, the connection is broken.
bool take_line(Endpoint&, const Line&, uint32_t meta);
// Where the payload of a line lies; null (and the connection broken) when the line makes no sense.
const std::byte* payload_of(Endpoint&, const Line&, uint32_t flags, uint32_t length, uint32_t unit);
// Takes the next posted receive for a message of `total` bytes. False: the message must not be placed (the
// receive, if any, was completed in error and what has to follow was done).
bool open_receive(Endpoint&, uint32_t total);
void acknowledge(Endpoint&);
// Its two halves. The first comes before the receive is completed: a program that has seen the message may
// end at once, and its sender must still find that the message has arrived.
inline void count_ack(Rx& rx) { rx.own->placed.store(++rx.acks, std::memory_order_release); }
inline void tell_ack(Endpoint& ep) {
    light_barrier();
    if (ep.rx.peer->send_mode.load(std::memory_order_relaxed) != kModePolled) ring_peer(ep);
}
// Completes the receive under way and acknowledges.
void close_receive(Endpoint&, uint32_t operation, uint32_t flags, uint32_t immediate, uint32_t length);
// The line being taken breaks the connection: none behind it is taken any more.
void break_by_line(Endpoint&, VIP_ERROR_CODE code, bool report, VIP_ULONG opcode = 0);
// A line that no correct peer would have sent.
bool nonsense(Endpoint&);
// Reliable Reception: what was wrong with the message that should have been acknowledged next.
void give_verdict(Endpoint&, uint32_t status);

// contract operations
void kick_send(ViCore&);  // lane_send_short.cpp
void kick_recv(ViCore&);
void poll_send(ViCore&);
void poll_recv(ViCore&);

}  // namespace viaduct::paramnet
