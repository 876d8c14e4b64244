// SPDX-License-Identifier: BSD-2-Clause
// The collective operations: each fills a schedule with the algorithm that suits size and count. Arguments have been
// checked; MPI_IN_PLACE is passed on. On inter-communicators they are those of the MPI standard, chapter 5.
#pragma once

#include "mpi-adi/engine/coll/schedule.hpp"

namespace viaduct::mpi::coll {

// Items in a buffer: one process's share of a collective operation.
struct Items {
    const void* base;
    MPI_Count count;
    const Datatype* type;

    char* at(MPI_Aint items) const { return static_cast<char*>(const_cast<void*>(base)) + items * type->extent(); }
    bool in_place() const { return base == MPI_IN_PLACE; }
};

// Counts or displacements as the program gave them: ints, or 64 bits in the functions for large counts.
class Numbers {
  public:
    Numbers() = default;
    Numbers(const int* values, size_t n) : ints_(values), size_(n) {}
    Numbers(const MPI_Count* values, size_t n) : wide_(values), size_(n) {}

    size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    MPI_Count operator[](size_t i) const { return ints_ ? ints_[i] : wide_[i]; }

  private:
    const int* ints_ = nullptr;
    const MPI_Count* wide_ = nullptr;
    size_t size_ = 0;
};

// A share for each process: counts and displacements (in items) of one type; equal ones when counts is empty. Without
// displacements all shares are empty.
struct Shares {
    void* base;
    Numbers counts, displacements;
    MPI_Count count;  // of each, when they are equal
    const Datatype* type;
    bool varying = false;  // the operation is one of unequal shares, also where this process does not see them

    MPI_Count count_of(int rank) const { return counts.empty() ? count : counts[size_t(rank)]; }
    MPI_Aint offset_of(int rank) const {
        if (counts.empty()) return rank * count;
        return displacements.empty() ? 0 : displacements[size_t(rank)];
    }
    char* at(int rank) const { return static_cast<char*>(base) + offset_of(rank) * type->extent(); }
    bool in_place() const { return base == MPI_IN_PLACE; }
};

// A share for each process with a type of its own; displacements in bytes.
struct TypedShares {
    void* base;
    Numbers counts, displacements;
    std::vector<const Datatype*> types;

    char* at(int rank) const { return static_cast<char*>(base) + displacements[size_t(rank)]; }
    bool in_place() const { return base == MPI_IN_PLACE; }
};

void barrier(Schedule& s);
// The same for a blocking call within one group, without a schedule: there is too little to do (at_once.cpp).
[[nodiscard]] int barrier_at_once(Communicator& comm);
void bcast(Schedule& s, Items items, int root);
void gather(Schedule& s, Items in, Shares out, int root);
void scatter(Schedule& s, Shares in, Items out, int root);
void allgather(Schedule& s, Items in, Shares out);
void alltoall(Schedule& s, Shares in, Shares out);
void alltoallw(Schedule& s, TypedShares in, TypedShares out);
void reduce(Schedule& s, const void* in, void* out, MPI_Count count, const Datatype& type, Operator& op, int root);
void allreduce(Schedule& s, const void* in, void* out, MPI_Count count, const Datatype& type, Operator& op);
// The same for a few built-in items and a blocking call, whose arguments need not have been checked. False: they are
// not that, or not right, and nothing has been done.
[[nodiscard]] bool allreduce_at_once(Communicator& comm, const void* in, void* out, MPI_Count count, MPI_Datatype type,
                                     MPI_Op op, int* error);
void reduce_scatter(Schedule& s, const void* in, void* out, const Numbers& counts, const Datatype& type, Operator& op);
void scan(Schedule& s, const void* in, void* out, MPI_Count count, const Datatype& type, Operator& op, bool exclusive);

// With neighbours of the topology.
void neighbour_allgather(Schedule& s, Items in, Shares out);
void neighbour_alltoall(Schedule& s, Shares in, Shares out);
void neighbour_alltoallw(Schedule& s, TypedShares in, TypedShares out);

// Pieces that others are made of; within one group, `out` holds the own contribution at the beginning.
void bcast_within(Schedule& s, Items items, int root);
void reduce_within(Schedule& s, void* inout, MPI_Count count, const Datatype& type, Operator& op, int root);
void allreduce_within(Schedule& s, void* inout, MPI_Count count, const Datatype& type, Operator& op);

}  // namespace viaduct::mpi::coll
