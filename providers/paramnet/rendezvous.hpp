// SPDX-License-Identifier: BSD-2-Clause
// Messages that do not go inside a line: which method they use, how long they take, and which end hands them over. [S]:
// vi.send.lock is held, [R]: vi.recv.lock.
#pragma once

#include "providers/paramnet/send.hpp"

namespace viaduct::paramnet {

struct Peer;

// From which length on this end pulls what that peer sends; 0: never, kLearnt: where the peer finds it
// faster.
uint32_t pull_threshold(const NicContext&, const Peer&);

// rendezvous.cpp
void install_method_tuner(Endpoint&);  // [S] once the peer has started
void install_method_tuner(Endpoint&, uint32_t pull_from);
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

// latency_probe.cpp: how long a message takes (method_tuner.hpp)
uint32_t mark_probe(Line&, Probe, uint32_t trial, int64_t* begun);  // [S] begins now; the flag to publish it with
void note_sent(Endpoint&, const OutgoingMessage&);                  // [S] all of it is in the ring
void read_probe_result(Endpoint&);                                  // [S] what the receiver has told
ProbeMark take_probe_mark(const Endpoint&, const Line&);            // [R] its first line is taken
void publish_probe_result(Endpoint&, const ProbeMark&);             // [R] it has arrived

// Sends from this length up are pulled if they lie in the arena: those of one fragment have a fast path of
// their own.
inline constexpr uint32_t kArenaPullFrom = kMinFragment + 1;

}  // namespace viaduct::paramnet
