// SPDX-License-Identifier: BSD-2-Clause
// One-sided operations on memory that the NIC reaches, by remote writes and reads of its own: the member's program
// takes no part. Called by origin.cpp with the engine's lock held, after epoch, range and types have been checked. The
// buffers of the program are in use until the operation is no longer outstanding (transfer.hpp).
#pragma once

#include "mpi-adi/engine/rma/origin.hpp"

namespace viaduct::mpi::rma {

// Begins a put or a get of as many bytes as the smaller side has, of `target.count` items that begin at `address`.
// `request` as in origin.hpp. False: it cannot be done so, and nothing has begun.
[[nodiscard]] bool remote_put(Window& window, const Items& origin, const Place& target, uint64_t address,
                              Request** request);
[[nodiscard]] bool remote_get(Window& window, const Items& origin, const Place& target, uint64_t address,
                              Request** request);

// All puts to the member so far lie in its memory when what this begins is no longer outstanding.
void settle_puts(Window& window, int rank);

}  // namespace viaduct::mpi::rma
