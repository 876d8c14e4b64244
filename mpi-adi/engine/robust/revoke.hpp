// SPDX-License-Identifier: BSD-2-Clause
// MPIX_Comm_revoke: closes all channels of the communicator except control, in all members that are not lost. Each
// member that receives the revocation sends it to all others, so one surviving receiver is enough. Engine's lock held;
// never waits; also called while messages arrive. Rules: docs/mpi-robust.md, docs/mpi-engine.md.
#pragma once

#include "mpi-adi/engine/communicator.hpp"

namespace viaduct::mpi::robust {

// Nothing more to do once all members have been sent it, whether the program asked for it or another member did. A call
// that lacks memory throws, and the next one does all of it.
void revoke(Communicator& comm);
bool is_revoked(const Communicator& comm);

}  // namespace viaduct::mpi::robust
