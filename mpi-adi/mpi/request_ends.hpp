// SPDX-License-Identifier: BSD-2-Clause
// How a completed request leaves: what MPI_Wait and MPI_Test and their families have in common.
#pragma once

#include "mpi-adi/engine/request.hpp"

namespace viaduct::mpi {

// A request that is nobody's (MPI_REQUEST_NULL) or a persistent one that is not started: never waited for.
inline bool is_idle(const Request* request) {
    return request == nullptr || (request->persistent != nullptr && !request->persistent->active);
}

// Status and error of a request that is done; frees it, and the program's handle with it, unless it is
// persistent.
int end_request(Request* request, MPI_Request* handle, MPI_Status* status);

}  // namespace viaduct::mpi
