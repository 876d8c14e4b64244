// SPDX-License-Identifier: BSD-2-Clause
// The library as its modules see it (struct mpip_device).
#pragma once

#include "mpi-adi/transport/adi/cmpi_adi.h"

namespace viaduct::adi {
extern const mpip_device device;
}
