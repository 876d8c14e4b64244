// SPDX-License-Identifier: BSD-2-Clause
// A collective call as its members tell each other, and the comparison of two.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mpi-adi/engine/communicator.hpp"

namespace viaduct::mpi::checking {

// Data between two processes: bytes, below 0 when nothing is said about it, and the basic type that all of it is of, or
// MPI_DATATYPE_NULL.
struct Flow {
    int64_t bytes = -1;
    MPI_Datatype basic = MPI_DATATYPE_NULL;
};

// The call of this process. The lists are by rank of the other process, or empty.
struct Description {
    int root = -100;  // kNoRoot
    MPI_Op op = MPI_OP_NULL;
    std::vector<Flow> gives;
    std::vector<Flow> takes;
};

constexpr MPI_Op kOpOfProgram = 1;  // those have different handles in each process

// The message from one process to another.
struct Signature {
    char function[40];
    int32_t root;
    MPI_Op op;
    int32_t waits;  // 1: the process can do nothing else before the others have come
    MPI_Datatype basic;
    int64_t bytes;  // that go to the receiver of this message
};

// "MPI_Bcast" of "MPI_Bcast_c": they fit together.
std::string plain_name(const char* function);
Signature signature_for(int peer, const std::string& function, bool waits, const Description& own);
// What does not fit, in words; empty when all does. `peer` is the rank that `theirs` is from.
std::string difference(const Communicator& comm, const std::string& function, const Description& own, int peer,
                       const Signature& theirs);
// "rank 2", with its rank in MPI_COMM_WORLD where that is another one.
std::string text_of_rank(const Communicator& comm, int rank);
std::string text_of_comm(const Comm& comm);

// What the functions of coll:: have said about this schedule.
Description description_of(const Schedule& s);

}  // namespace viaduct::mpi::checking
