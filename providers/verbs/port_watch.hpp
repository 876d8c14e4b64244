// SPDX-License-Identifier: BSD-2-Clause
// The port under a NIC. A sender finds out that a link is down; an end that only waits may
// not (soft-RoCE goes on trying to send a control QP's word for as long as its interface is down). So a port
// that is down for as long as a device would try has lost its connections. Progress thread only.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "providers/verbs/settings.hpp"
#include "viaduct/provider.hpp"

namespace viaduct::verbs {

// How long a device tries to send before it gives up, at most: 4.096 us * 2^ack_timeout, up to four times as
// long where it says so, for each try; not less than a second.
int64_t port_down_limit(const NicSettings&);
// A port is down, or up again.
void handle_port_event(NicContext&, const ibv_async_event&, int64_t now);
// Gives the connections up for lost when the time has come; before settle_links. When to look again, or
// kNever.
Deadline watch_port(NicContext&, int64_t now);

}  // namespace viaduct::verbs
