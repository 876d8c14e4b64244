// SPDX-License-Identifier: BSD-2-Clause
// Generalized requests whose work the library asks for (MPICH's MPIX_Grequest_start): each pass calls the
// program's poll function, until the program says MPI_Grequest_complete.
#pragma once

#include <mpi.h>

#include <memory>

namespace viaduct::mpi {

struct Request;

struct Polled {
    MPIX_Grequest_poll_function* poll_function;
    MPIX_Grequest_wait_function* wait_function;  // used where there is no function to poll
    void* extra_state;
    Request* request;     // valid until over
    bool over = false;    // completed
    bool inside = false;  // its function is running, and has called MPI
};

void poll_from_now_on(std::shared_ptr<Polled> polled);

// Called by progress(); true when one of them completed.
bool poll_generalized();

// Completes a generalized request, and frees it if no call will wait for it: then the answer is that of the
// program's free function.
[[nodiscard]] int complete_generalized(Request* request, int error);

}  // namespace viaduct::mpi
