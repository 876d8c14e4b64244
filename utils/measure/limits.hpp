// SPDX-License-Identifier: BSD-2-Clause
// What this machine can do at best between two processes, without any protocol. Each function is called by
// both sides of a pair and gives the leader's figure.
#pragma once

#include <cstddef>
#include <cstdint>

#include "utils/measure/pair.hpp"

namespace viaduct::measure {

inline constexpr size_t kLargestMessage = 4 << 20;
inline constexpr size_t kArenaBytes = kLargestMessage + (1 << 20);  // of each side

// Half round trip, ns: payload written into memory the other side polls, its last word last.
double put_ping_pong(Pair&, size_t bytes);
// The same with a copy into a shared ring and a copy out of it, both sides copying at once when it is long:
// the best of several sizes of blocks, written plainly or past the caches. So is ring_stream().
double ring_ping_pong(Pair&, size_t bytes);
// GB/s: messages one way through the ring, both copies included.
double ring_stream(Pair&, size_t bytes);
// Millions a second of messages of one cache line, one way.
double line_rate(Pair&);
// GB/s of memcpy inside the leader.
double plain_copy(Pair&, size_t bytes);
// From the store of one side to the wake-up of the other that sleeps on a futex, ns.
double futex_wake_up(Pair&);

}  // namespace viaduct::measure
