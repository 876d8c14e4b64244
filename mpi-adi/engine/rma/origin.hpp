// SPDX-License-Identifier: BSD-2-Clause
// The operations as an origin begins them. Arguments have been checked one by one; what they are together
// (epoch, range, types that match) is checked here. Results are MPI error classes. With `request` the
// operation gets one of its own, complete when the origin's buffers are free and hold what they shall.
#pragma once

#include "mpi-adi/engine/rma/window.hpp"

namespace viaduct::mpi::rma {

// Items in a buffer of the origin.
struct Items {
    void* base = nullptr;
    int64_t count = 0;
    const Datatype* type = nullptr;

    uint64_t bytes() const { return static_cast<uint64_t>(count) * static_cast<uint64_t>(type->size); }
};

// Items in the window of a member.
struct Place {
    int rank;
    MPI_Aint displacement;  // in that member's units
    int64_t count;
    const Datatype* type;

    uint64_t bytes() const { return static_cast<uint64_t>(count) * static_cast<uint64_t>(type->size); }
};

[[nodiscard]] int put(Window& window, const Items& origin, const Place& target, Request** request);
[[nodiscard]] int get(Window& window, const Items& origin, const Place& target, Request** request);
[[nodiscard]] int accumulate(Window& window, const Items& origin, const Place& target, MPI_Op op, Request** request);
[[nodiscard]] int get_accumulate(Window& window, const Items& origin, const Items& result, const Place& target,
                                 MPI_Op op, Request** request);
[[nodiscard]] int fetch_and_op(Window& window, const void* origin, void* result, const Datatype& type, int rank,
                               MPI_Aint displacement, MPI_Op op);
[[nodiscard]] int compare_and_swap(Window& window, const void* origin, const void* compare, void* result,
                                   const Datatype& type, int rank, MPI_Aint displacement);

}  // namespace viaduct::mpi::rma
