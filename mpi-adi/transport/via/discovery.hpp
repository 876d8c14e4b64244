// SPDX-License-Identifier: BSD-2-Clause
// Whether a NIC says of itself that it sees an address.
#pragma once

#include "mpi-adi/transport/adi/vip_calls.hpp"

#include <cstddef>

namespace viaduct::via {

bool discovers(VIP_NIC_HANDLE nic, const unsigned char* address, size_t len);

}  // namespace viaduct::via
