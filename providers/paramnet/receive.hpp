// SPDX-License-Identifier: BSD-2-Clause
// The receiving half of a connection: from the peer's lane into posted receives. [R]: vi.recv.lock is held.
#pragma once

#include "core/sync/asymmetric_barrier.hpp"
#include "providers/paramnet/endpoint.hpp"

namespace viaduct::paramnet {

inline constexpr uint32_t kPollBudget = 64;  // lines taken by one poll

// lane_receive.cpp [R]
// Takes at most `budget` lines; true when there may be more.
bool take_lines(Endpoint&, uint32_t budget);
// The same by the progress thread, for a program that does not look.
bool serve_lines(Endpoint&, uint32_t budget);
// All that the lane holds, by an end that is about to leave, also when something other than a line has broken
// the connection. Both queue locks held, Endpoint::servicing set.
void take_last_lines(Endpoint&);
// A poll: takes what has arrived and requests another poll for what it leaves.
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
inline void close_receive(Endpoint& ep, uint32_t operation, uint32_t flags, uint32_t immediate, uint32_t length) {
    WorkQueue& q = ep.vi->recv;
    if ((flags & kFlagImmediate) != 0) [[unlikely]] {
        q.oldest_incomplete()->CS.ImmediateData = immediate;
        operation |= VIP_STATUS_IMMEDIATE;
    }
    if ((flags & kFlagAck) != 0) count_ack(ep.rx);
    complete_head(q, operation, length);
    if ((flags & kFlagAck) != 0) tell_ack(ep);
}
// The line being taken breaks the connection: none behind it is taken any more.
void break_by_line(Endpoint&, VIP_ERROR_CODE code, bool report, VIP_ULONG opcode = 0, const Cause& = {});
// A line that no correct peer would have sent.
bool protocol_violation(Endpoint&);
// Reliable Reception: what was wrong with the message that should have been acknowledged next.
void acknowledge_error(Endpoint&, uint32_t status);

// contract operations
void kick_recv(ViCore&);
void poll_recv(ViCore&);

}  // namespace viaduct::paramnet
