// SPDX-License-Identifier: BSD-2-Clause
// Discovery (viaduct/provider.hpp, ControlOps), which the agent calls, and the lookup of an address's port, which
// opening a NIC in the application uses as well.
#pragma once

#include "providers/verbs/mapping.hpp"
#include "providers/verbs/verbs_ops.hpp"
#include "viaduct/provider.hpp"

namespace viaduct::verbs {

Status discover(const Settings&, const Hints&, NicSink&);

// Fills device and port that rdma_cm finds for an IPv4 address of this host. False with errno: ENODEV when there is
// none, or what has failed.
bool find_port_of_address(rdma_event_channel* channel, in_addr ip, PortFacts* out);

}  // namespace viaduct::verbs
