// SPDX-License-Identifier: BSD-2-Clause
// Causes of the user agent as findings of the wire, and back. A finding has no number of this end, only numbers
// that the peer has sent itself. Used by the engine.
#pragma once

#include "core/vi/cause.hpp"
#include "providers/wire/finding.hpp"

namespace viaduct::packet {

// None: there is no cause, or the peer sees the cause without a finding (no answer, peer has left, protocol error).
wire::Finding finding_of(const Cause&);
// Numbers that the finding does not have are Cause::kNotSent.
Cause cause_of(const wire::Finding&);

}  // namespace viaduct::packet
