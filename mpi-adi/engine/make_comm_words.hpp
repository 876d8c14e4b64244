// SPDX-License-Identifier: BSD-2-Clause
// What the calls that make communicators share: words of a process to the others of a group. For make_comm*.cpp only.
#pragma once

#include <vector>

#include "mpi-adi/engine/coll/coll.hpp"
#include "mpi-adi/engine/make_comm.hpp"

namespace viaduct::mpi {

inline const Datatype& bytes_type() { return *type_of(MPI_BYTE); }

// A value of the first process (of `root`) to all of one group.
template <typename T>
int tell_all(Communicator& comm, T* values, MPI_Count n, int root) {
    Schedule s(comm);
    coll::bcast_within(s, {values, n * MPI_Count(sizeof(T)), &bytes_type()}, root);
    return s.run();
}

// The record of each process, in the order of ranks of one group.
template <typename T>
int collect(Communicator& comm, const T& own, std::vector<T>* all) {
    all->resize(size_t(comm.size));
    Schedule s(comm);
    coll::allgather(s, {&own, sizeof(T), &bytes_type()}, {all->data(), {}, {}, sizeof(T), &bytes_type()});
    return s.run();
}

template <typename T>
Payload payload(T* values, size_t n) {
    return {const_cast<void*>(static_cast<const void*>(values)), n * sizeof(T), nullptr, 0};
}

// What is wrong with a call that this process or another one refuses.
inline int own_or(int refused, int64_t others) { return refused != MPI_SUCCESS ? refused : int(others); }

// The first error of those that all members have said.
template <typename Word>
int first_refusal(const std::vector<Word>& all) {
    for (const Word& word : all) {
        if (word.refused != MPI_SUCCESS) {
            return int(word.refused);
        }
    }
    return MPI_SUCCESS;
}

}  // namespace viaduct::mpi
