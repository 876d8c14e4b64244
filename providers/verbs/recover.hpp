// SPDX-License-Identifier: BSD-2-Clause
// Connections of level Unreliable over a reliable queue pair. The network loses nothing (spec/compat V6), but
// what VIA drops and goes on from, a queue pair fails of: a message without a receive, a receive that is too
// short or bad, an RDMA write that is refused. Then both ends make their queue pairs anew, and what had not
// arrived is sent again (spec/reliability 6.2, spec/verbs e.2 rows 8, 9 and 12).
//
// One round: each end stops its queue pair and waits until the device has told all that became of its work;
// says `reset`, with the number of messages that have arrived since the last round and the packet number it
// will begin with; when the other has said so too, renews its queue pair, posts its receives and says
// `ready`; when the other is ready as well, posts what the other has not received.
#pragma once

#include <cstdint>

#include "providers/verbs/control_qp.hpp"
#include "viaduct/provider.hpp"

namespace viaduct::verbs {

// The data queue pair has failed. Any VI locks may be held.
void want_recovery(Link&);
// Progress thread, no locks: the peer's word about the round, and a refused write that has to take a receive.
void hear_of_recovery(Link&, Endpoint&, const Message&);
void refuse_later(Link&, const Endpoint&, uint32_t immediate);
// Progress thread: one step of every recovery. The time of the next, or kNever.
Deadline recover_links(NicContext&, int64_t now);

}  // namespace viaduct::verbs
