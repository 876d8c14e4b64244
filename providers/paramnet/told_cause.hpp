// SPDX-License-Identifier: BSD-2-Clause
// What an end has found wrong, told to the other one in its end record, so that both can say why. It decides nothing:
// a peer may write there what it likes.
#pragma once

#include "core/vi/cause.hpp"
#include "providers/paramnet/endpoint.hpp"

namespace viaduct::paramnet {

// Before what makes the other end look: an event, an acknowledgement, a line, the mark that this end has left. The
// first cause of a connection stands. One of the queue locks is held.
void tell_cause(Endpoint&, const Cause&);
// What the other end has told; none when it has told nothing.
Cause cause_told(const Endpoint&);
// Why this end leaves: what one of its descriptors has failed of, or what has broken the connection. Both locks held.
void tell_own_cause(Endpoint&);

// Why a peer's memory may not be reached by the descriptor: permissions of its VI, region, tags, range. [S]
Cause explain_target(const Endpoint&, const VIP_DESCRIPTOR*, uint64_t length);
// The same of this end's memory, for an operation of the peer. flags: RegionFlag that it needs.
Cause explain_own_target(const Endpoint&, uint32_t handle, uint64_t address, uint64_t length, uint32_t flags);

}  // namespace viaduct::paramnet
