// SPDX-License-Identifier: BSD-2-Clause
// The doorbells of our own hub: which endpoints were rung for, and which called the progress thread. All peers write
// the same words of the hub, so what it says is checked against the end record of each connection, which only one peer
// writes. A ring that another peer has taken out of the hub is found there. Any thread.
#pragma once

#include <cstdint>

#include "providers/paramnet/segment_layout.hpp"

namespace viaduct {
struct NicContext;
}

namespace viaduct::paramnet {

// What the caller does next.
enum class Before : bool { poll, sleep };

// Hands out what was rung for to the groups concerned. A ring that nothing in the hub explains makes it look at the end
// records of all connections: before a poll once a millisecond at most, before a sleep at once.
void drain_doorbells(NicContext&, Before);

// Looks at the end records of all connections. A mark that is found although the hub has not changed is a lost ring:
// another process has taken it away. For ten seconds from then on sleeps are short, and drain_doorbells() looks at all
// end records.
void look_for_lost_rings(NicContext&);

// How long a thread may sleep, in nanoseconds, before it looks for lost rings.
int64_t longest_sleep(const NicContext&);

// One bit for each endpoint whose peer, or we ourselves, have called the progress thread since the last look. Progress
// thread only. `look`: at the end records of all connections, as it does every 100 ms.
void take_calls(NicContext&, bool look, uint64_t (&slots)[kDoorbellWords]);

// There is something for the pollers or sleepers of one of our endpoints, or of all, that no peer rings for.
void request_poll_of(NicContext&, uint32_t slot);
void request_poll_of_all(NicContext&);
// The progress thread is to look at one of our endpoints.
void call_own(NicContext&, uint32_t slot);

}  // namespace viaduct::paramnet
