// SPDX-License-Identifier: BSD-2-Clause
// Groups: ordered sets of processes, each named by its rank in the world. Immutable and shared by reference count,
// because every communicator holds one or two.
#pragma once

#include <mpi.h>

#include <span>
#include <vector>

namespace viaduct::mpi {

struct Group {
    Group(std::vector<int> processes, int own_world_rank);

    int size() const { return int(world.size()); }
    // Rank in this group of a process of the world, or MPI_UNDEFINED.
    int rank_of(int world_rank) const;

    std::vector<int> world;  // by rank in the group

  private:
    mutable std::vector<std::pair<int, int>> by_world_;  // sorted, made at the first search in a large group

  public:
    int rank;                     // of this process, or MPI_UNDEFINED; found by searching the members above
    int handle = MPI_GROUP_NULL;  // given on demand, kept until freed
    int references = 1;
};

Group* group_of(MPI_Group handle);
// The handle of a new reference to the group, which is given up when there is no room for the handle. The empty group
// has one handle for ever.
MPI_Group group_publish(Group* group);
void group_retain(Group* group);
void group_release(Group* group);
Group* empty_group();

// Which processes of a group the triplets (first, last, stride) of MPI_Group_range_* name. Appends to `ranks`;
// an MPI error class says which rule was broken.
[[nodiscard]] int expand_ranges(const Group& group, int n, const int ranges[][3], std::vector<int>& ranks);

[[nodiscard]] int group_translate(const Group& from, std::span<const int> ranks, const Group& to, int* out);

}  // namespace viaduct::mpi
