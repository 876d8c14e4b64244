// SPDX-License-Identifier: BSD-2-Clause
// Operations of the control half (viaduct/provider.hpp, ControlOps); called by the agent only.
#pragma once

#include "providers/verbs/mapping.hpp"
#include "providers/verbs/verbs_ops.hpp"
#include "viaduct/provider.hpp"

namespace viaduct::verbs {

Status discover(const Settings&, const Hints&, NicSink&);

// The device and port that rdma_cm puts behind an IPv4 address; false when there is none.
bool port_behind(rdma_event_channel* channel, in_addr ip, PortFacts* out);

}  // namespace viaduct::verbs
