// SPDX-License-Identifier: BSD-2-Clause
// Processors that this thread may use.
#pragma once

namespace viaduct {

// Its affinity, cut by the CPU quota of its control groups. At least 1. Asks the system every 100 ms (affinity:
// programs pin themselves at any time) and 10 s (quotas hardly change) at most.
int allowed_processors();

}  // namespace viaduct
