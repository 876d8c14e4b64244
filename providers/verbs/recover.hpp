// SPDX-License-Identifier: BSD-2-Clause
// Connections of level Unreliable over a reliable queue pair, so that the network loses nothing (spec/compat V6).
// Three errors that VIA answers by dropping one message (spec/reliability 6.2) put a reliable queue pair into its error
// state: a message without a receive, a receive that is too short or bad, an RDMA write that is refused. Then both ends
// make their queue pairs anew and send again what had not arrived (spec/verbs e.2 rows 8, 9 and 12; docs/verbs.md,
// "Unreliable").
//
// One round has these steps, the same at both ends:
// 1. Stop the data queue pair, and take completions until the device has reported every work request.
// 2. Send `reset` over the control QP: the number of messages received since the last round, and the first packet
//    number of the next queue pair.
// 3. When the peer's `reset` is here: make the queue pair anew, post the receives, send `ready`.
// 4. When the peer's `ready` is here: post again the sends that the peer has not received.
#pragma once

#include <cstdint>

#include "providers/verbs/control_qp.hpp"
#include "viaduct/provider.hpp"

namespace viaduct::verbs {

// The data queue pair has failed: the progress thread begins a round. Any VI locks may be held.
void want_recovery(Link&);
// The peer's `reset` or `ready`. Progress thread, no locks held; takes both locks of the VI.
void handle_recovery(Link&, Endpoint&, const Message&);
// A refused RDMA write with immediate data takes a receive, behind all that arrived before it: in the next round, which
// this begins. Progress thread, no locks held.
void refuse_later(Link&, const Endpoint&, uint32_t immediate);
// Makes a step of every recovery under way. Returns when it has to be called again, or kNever. Progress thread.
Deadline recover_links(NicContext&, int64_t now);

}  // namespace viaduct::verbs
