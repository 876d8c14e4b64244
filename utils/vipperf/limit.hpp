// SPDX-License-Identifier: BSD-2-Clause
// The limits of the machine by name, so that the leader can ask the follower to take part in one.
#pragma once

#include "utils/measure/pair.hpp"
#include "utils/vipperf/plan.hpp"

namespace viaduct::vipperf {

// Both sides at once; the leader's figure: ns, GB/s for stream and copy, millions a second for line_rate.
double measure_limit(measure::Pair&, Limit, uint64_t bytes);

}  // namespace viaduct::vipperf
