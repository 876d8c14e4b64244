// SPDX-License-Identifier: BSD-2-Clause
// Time limits as the calls of VIPL take them.
#pragma once

#include "core/clock/limits.hpp"
#include "vipl.h"

namespace viaduct::tools {

// In milliseconds, with the factor. Any thread.
inline VIP_ULONG limit_ms(TimeLimit limit) { return static_cast<VIP_ULONG>(limit_ns(limit) / 1'000'000); }

}  // namespace viaduct::tools
