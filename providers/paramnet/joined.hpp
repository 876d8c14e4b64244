// SPDX-License-Identifier: BSD-2-Clause
// What an end does with kJoined, the agent's message that has the segment of a new connection (viaduct/kagent.hpp).
#pragma once

#include "core/agent/mail.hpp"
#include "core/vi/vi_core.hpp"
#include "providers/paramnet/endpoint.hpp"
#include "viaduct/provider.hpp"

namespace viaduct::paramnet {

// Checks kJoined and maps its segment and the peer's memory. On failure nothing stays mapped.
Status map_joint(NicContext& nic, const kagent::Joined& joined, Mail& mail, Joint* out);
// Writes into the segment what the other end needs of this one before data flows.
void introduce(const NicContext& nic, const ViCore& vi, const ViTraits& traits, const Joint& joint);
// Tells the other end, in the segment, that this end has given the connection up.
void leave_at_once(Mail& mail, const kagent::Joined& joined);

}  // namespace viaduct::paramnet
