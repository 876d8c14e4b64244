// SPDX-License-Identifier: BSD-2-Clause
// Which sends the receiver copies straight out of the sender's memory instead of through the ring of blocks.
#pragma once

#include <cstdint>

#include "viaduct/provider.hpp"

namespace viaduct::paramnet {

struct Peer;

// From which length on this end pulls what that peer sends; 0: never, kLearnt: where the peer finds it
// faster.
uint32_t pull_threshold(const NicContext&, const Peer&);

}  // namespace viaduct::paramnet
