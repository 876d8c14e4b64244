// SPDX-License-Identifier: BSD-2-Clause
// Buffered sends. The program's buffer limits how much may be under way at once. The copies themselves lie in memory of
// the library, so that nothing fragments and a buffer of any alignment will do.
#pragma once

#include "mpi-adi/engine/request.hpp"

namespace viaduct::mpi {

// MPI_ERR_BUFFER when there is one already, or none to detach. Detaching waits until all buffered messages
// have left.
[[nodiscard]] int attach_buffer(void* address, size_t bytes);
[[nodiscard]] int detach_buffer(void** address, size_t* bytes);

// Sends, or copies and sends on its own. MPI_ERR_BUFFER when the buffer has no room.
[[nodiscard]] int buffered_send(Comm& comm, int peer, int tag, const Payload& payload);
// Called when a copy is released.
void free_buffer_space(uint64_t bytes);

}  // namespace viaduct::mpi
