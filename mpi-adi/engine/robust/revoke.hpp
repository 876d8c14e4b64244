// SPDX-License-Identifier: BSD-2-Clause
// MPIX_Comm_revoke: every channel of the communicator but control is closed, in all members that are left. Each that
// is told of it tells all others, so that all are told when one that is left is.
#pragma once

#include "mpi-adi/engine/communicator.hpp"

namespace viaduct::mpi::robust {

// Only the first time, whether the program asks for it or another member tells of it.
void revoke(Communicator& comm);
bool is_revoked(const Communicator& comm);

}  // namespace viaduct::mpi::robust
