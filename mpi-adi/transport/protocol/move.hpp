// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include "mpi-adi/transport/protocol/peer.hpp"

namespace viaduct::protocol {

uint64_t now_ns();  // for what is measured

// The receiver reads at least a part.
inline bool reads(Method method) { return method == Method::get || method == Method::both; }

}  // namespace viaduct::protocol
