// SPDX-License-Identifier: BSD-2-Clause
// Groups and the arithmetic of ranks. See group.hpp.
#include "mpi-adi/engine/group.hpp"

#include <algorithm>

#include "core/process/never_destroyed.hpp"
#include "mpi-adi/engine/handle.hpp"

namespace viaduct::mpi {
namespace {

constexpr size_t kSearchable = 16;  // up to here a walk is as fast as an index

NeverDestroyed<ObjectTable<Group, HandleType::group>> groups;

}  // namespace

Group::Group(std::vector<int> processes, int own_world_rank)
    : world(std::move(processes)), rank(rank_of(own_world_rank)) {}

int Group::rank_of(int world_rank) const {
    if (world.size() <= kSearchable) {
        auto found = std::find(world.begin(), world.end(), world_rank);
        return found == world.end() ? MPI_UNDEFINED : int(found - world.begin());
    }
    if (by_world_.empty()) {
        for (size_t r = 0; r < world.size(); ++r) {
            by_world_.emplace_back(world[r], int(r));
        }
        std::sort(by_world_.begin(), by_world_.end());
    }
    auto found = std::lower_bound(by_world_.begin(), by_world_.end(), std::pair(world_rank, -1));
    return found != by_world_.end() && found->first == world_rank ? found->second : MPI_UNDEFINED;
}

Group* empty_group() {
    static Group* empty = [] {
        auto* made = new Group({}, MPI_UNDEFINED);
        made->handle = MPI_GROUP_EMPTY;
        return made;
    }();
    return empty;
}

Group* group_of(MPI_Group handle) { return handle == MPI_GROUP_EMPTY ? empty_group() : groups->find(handle); }

MPI_Group group_publish(Group* group) {
    if (group->size() == 0 && group != empty_group()) {
        group_release(group);
        return MPI_GROUP_EMPTY;
    }
    if (group->handle == MPI_GROUP_NULL) {
        try {
            group->handle = groups->add(group);
        } catch (...) {
            group_release(group);
            throw;
        }
    }
    return group->handle;
}

void group_retain(Group* group) { ++group->references; }

void group_release(Group* group) {
    if (group == empty_group() || --group->references > 0) {
        return;
    }
    if (group->handle != MPI_GROUP_NULL) {
        groups->remove(group->handle);
    }
    delete group;
}

int expand_ranges(const Group& group, int n, const int ranges[][3], std::vector<int>& ranks) {
    for (int i = 0; i < n; ++i) {
        auto [first, last, stride] = std::tuple(ranges[i][0], ranges[i][1], ranges[i][2]);
        if (stride == 0) {
            return MPI_ERR_ARG;
        }
        if (first < 0 || first >= group.size() || last < 0) {
            return MPI_ERR_RANK;
        }
        if ((stride > 0 && first > last) || (stride < 0 && first < last)) {
            return MPI_ERR_ARG;
        }
        for (int r = first; stride > 0 ? r <= last : r >= last; r += stride) {
            if (r < 0 || r >= group.size()) {
                return MPI_ERR_RANK;
            }
            ranks.push_back(r);
        }
    }
    std::vector<int> sorted = ranks;
    std::sort(sorted.begin(), sorted.end());
    return std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end() ? MPI_SUCCESS : MPI_ERR_RANK;
}

int group_translate(const Group& from, std::span<const int> ranks, const Group& to, int* out) {
    for (size_t i = 0; i < ranks.size(); ++i) {
        if (ranks[i] == MPI_PROC_NULL) {
            out[i] = MPI_PROC_NULL;
        } else if (ranks[i] < 0 || ranks[i] >= from.size()) {
            return MPI_ERR_RANK;
        } else {
            out[i] = to.rank_of(from.world[ranks[i]]);
        }
    }
    return MPI_SUCCESS;
}

}  // namespace viaduct::mpi
