// SPDX-License-Identifier: BSD-2-Clause
// What each module has done so far. Plain increments under the engine's lock.
#pragma once

#include "mpi-adi/transport/adi/cmpi_adi.h"

namespace viaduct::adi {
extern mpip_counters counters[NPROTO];
}
