// SPDX-License-Identifier: BSD-2-Clause
// How the data access functions of MPI begin and end: where the data lie (offset, individual or shared
// position), which processes take part (this one or all), and when the call returns.
#pragma once

#include <cstdint>

#include "mpi-adi/engine/io/file.hpp"

namespace viaduct::mpi::io {

enum class Position { given, individual, shared };

struct Transfer {
    Position position = Position::given;
    bool writes = false;
    bool collective = false;  // with the shared position: in the order of ranks
    MPI_Offset offset = 0;    // in etypes, where it is given
    void* buffer = nullptr;
    MPI_Count count = 0;
    const Datatype* type = nullptr;
    // The error of the arguments. In a collective operation this process still takes part, without data: the others
    // must not hang.
    int error = MPI_SUCCESS;
};

// Returns when it is done; the status tells the bytes.
[[nodiscard]] int transfer(File& file, const Transfer& what, MPI_Status* status);
// Returns at once; the request is complete when it is done.
[[nodiscard]] int start_transfer(File& file, const Transfer& what, Request** request);

}  // namespace viaduct::mpi::io
