// SPDX-License-Identifier: BSD-2-Clause
// The progress thread of a NIC context. It sleeps on rdma_cm's events, the device's asynchronous events, the
// control QPs' completions and a wake event; it moves sends on that wait for room. It never spins, and
// exists only once there is a connection to make.
#pragma once

#include <vector>

#include "providers/verbs/link.hpp"
#include "viaduct/provider.hpp"

namespace viaduct::verbs {

Status ensure_progress(NicContext&);
void stop_progress(NicContext&);
// There is something new for it to look at. Any locks may be held.
void wake_progress(NicContext&);
// Links there are now. Only the progress thread frees them, so only there the list stays good.
std::vector<Link*> all_links(NicContext&);

}  // namespace viaduct::verbs
