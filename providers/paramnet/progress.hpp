// SPDX-License-Identifier: BSD-2-Clause
// The progress thread of a NIC context: sleeps on the hub and is rung for RDMA to be served, lanes that have
// been full for a while, errors the other end has found, and ends of peers. Looks at backlogs every 2 ms
// while there are any. Never spins.
#pragma once

#include <cstdint>

#include "viaduct/types.hpp"

namespace viaduct {
struct NicContext;
struct Endpoint;
}  // namespace viaduct

namespace viaduct::paramnet {

// Starts the thread if it does not run yet.
Status ensure_progress(NicContext&);
// Ends it and waits until it has ended.
void stop_progress(NicContext&);
// Wakes it: something for it has been noted in the context.
void wake_progress(NicContext&);
// A peer's process has ended (event thread).
void report_death(NicContext&);
// A backlog has come into being: makes sure that the thread ticks.
void note_backlog(NicContext&);
// A thread goes to sleep while sends wait for acknowledgements: the same.
void note_awaited(NicContext&);

// Everything that can be done for one endpoint: takes what arrived, pushes what waits, handles errors and
// ends told by the peer, settles. No VI lock held.
void service(Endpoint&);

}  // namespace viaduct::paramnet
