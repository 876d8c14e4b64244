// SPDX-License-Identifier: BSD-2-Clause
// Communicators that have ended here, once processes have been lost: members that have not heard of it still send.
// Their messages are dropped, and those that ask for what was agreed get the answer. The last 256 are remembered.
#pragma once

#include "mpi-adi/engine/p2p.hpp"

namespace viaduct::mpi::robust {

void remember_ended(Comm& comm);
// Whether a context without a communicator is one of a communicator that has ended, and none that is still to be made.
bool is_ended(uint64_t context);

// A whole message for such a context.
void came_late(process_t* from, uint64_t context, const envelope& message, const void* data);
// A message that its module holds will be in the queue of this context, and is seen to in the next pass of progress.
void hold_for_later(uint64_t context);
// What watch() does for those; true when there was something to do.
bool see_to_held();
bool has_held();

}  // namespace viaduct::mpi::robust
