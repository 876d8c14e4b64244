// SPDX-License-Identifier: BSD-2-Clause
// The sending half of a connection: from the send queue into the peer's lane. [S]: vi.send.lock is held.
#pragma once

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
// The next line is free; false: no room, or the peer has violated the protocol and the connection is marked broken.
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
inline bool take_new_credits(Endpoint& ep) {
    const uint32_t posted = ep.peer_posted.load(std::memory_order_relaxed);
    if (static_cast<int32_t>(posted - ep.tx.credits) <= 0) return false;
    ep.tx.credits = posted;
    return true;
}

// send_finish.cpp [S]
void collect_acks(Endpoint&);
// The descriptor at that position of the send queue (taken) is decided: completes it in its turn.
void finish(Endpoint&, uint32_t position, uint32_t status, uint32_t length, After);
// The same, once the peer has acknowledged the line with kFlagAck just published.
void finish_on_ack(Endpoint&, uint32_t position, uint32_t status, uint32_t length);
// A message that needs a receive met none (spec/reliability 6.2).
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

// lane_send_short.cpp [S]
// A message that goes inside a line, of any form; it has been checked and its receive is reserved.
Step begin_short(Endpoint&, VIP_DESCRIPTOR*, uint32_t total);
// The line of the descriptor at that position is published: tells the peer, and completes it.
void finish_short_send(Endpoint&, uint32_t position, uint32_t length);

// lane_send_block.cpp [S]
// A new descriptor of one segment that goes into the blocks in one piece. False: anything unusual, and nothing has
// changed. Only while Tx::fast.
bool send_block(Endpoint&, ViCore&);

// contract operations
void kick_send(ViCore&);  // lane_send_short.cpp
void poll_send(ViCore&);  // send_finish.cpp

}  // namespace viaduct::paramnet
