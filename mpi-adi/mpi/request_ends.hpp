// SPDX-License-Identifier: BSD-2-Clause
// The end of a request: what MPI_Wait, MPI_Test and their variants have in common. Called with the engine's lock held.
#pragma once

#include "mpi-adi/engine/request.hpp"

namespace viaduct::mpi {

// Whether there is nothing to wait for: no request (MPI_REQUEST_NULL), or a persistent one that is not started.
inline bool is_idle(const Request* request) {
    return request == nullptr || (request->persistent != nullptr && !request->persistent->active);
}

// Stores the status of a request that is done and returns its error code. Unless it is persistent, frees it and sets
// *handle to MPI_REQUEST_NULL.
[[nodiscard]] int end_request(Request* request, MPI_Request* handle, MPI_Status* status);

}  // namespace viaduct::mpi
