// SPDX-License-Identifier: BSD-2-Clause
// MPI functions on groups.
#include "mpi-adi/engine/group.hpp"

#include <algorithm>

#include "mpi-adi/mpi/call.hpp"

namespace viaduct::mpi {
namespace {

int give(std::vector<int> processes, MPI_Group* newgroup) {
    if (processes.empty()) {
        *newgroup = MPI_GROUP_EMPTY;
        return MPI_SUCCESS;
    }
    *newgroup = group_publish(new Group(std::move(processes), world().rank));
    return MPI_SUCCESS;
}

bool ranks_hold(const Group& group, int n, const int ranks[]) {
    std::vector<bool> seen(size_t(group.size()), false);
    for (int i = 0; i < n; ++i) {
        if (ranks[i] < 0 || ranks[i] >= group.size() || seen[size_t(ranks[i])]) {
            return false;
        }
        seen[size_t(ranks[i])] = true;
    }
    return true;
}

int include(const Group& group, int n, const int ranks[], MPI_Group* newgroup) {
    std::vector<int> processes;
    processes.reserve(size_t(n));
    for (int i = 0; i < n; ++i) processes.push_back(group.world[size_t(ranks[i])]);
    return give(std::move(processes), newgroup);
}

int exclude(const Group& group, int n, const int ranks[], MPI_Group* newgroup) {
    std::vector<int> processes;
    for (int r = 0; r < group.size(); ++r) {
        if (std::find(ranks, ranks + n, r) == ranks + n) {
            processes.push_back(group.world[size_t(r)]);
        }
    }
    return give(std::move(processes), newgroup);
}

int select_members(MPI_Group handle, int n, const int ranks[], MPI_Group* newgroup, bool in) {
    Group* group = group_of(handle);
    if (!group) {
        return MPI_ERR_GROUP;
    }
    if (n < 0 || (n > 0 && !ranks)) {
        return MPI_ERR_ARG;
    }
    if (!ranks_hold(*group, n, ranks)) {
        return MPI_ERR_RANK;
    }
    return in ? include(*group, n, ranks, newgroup) : exclude(*group, n, ranks, newgroup);
}

int ranged(MPI_Group handle, int n, int ranges[][3], MPI_Group* newgroup, bool in) {
    Group* group = group_of(handle);
    if (!group) {
        return MPI_ERR_GROUP;
    }
    if (n < 0 || (n > 0 && !ranges)) {
        return MPI_ERR_ARG;
    }
    std::vector<int> ranks;
    if (int error = expand_ranges(*group, n, ranges, ranks)) {
        return error;
    }
    return in ? include(*group, int(ranks.size()), ranks.data(), newgroup)
              : exclude(*group, int(ranks.size()), ranks.data(), newgroup);
}

// Members of the first group, then those of the second that are not in it, as far as `keep` of the two says so.
template <typename InFirst>
int combine(MPI_Group first, MPI_Group second, MPI_Group* newgroup, InFirst&& in_first, bool rest_of_second) {
    Group* a = group_of(first);
    Group* b = group_of(second);
    if (!a || !b) {
        return MPI_ERR_GROUP;
    }
    std::vector<int> processes;
    for (int process : a->world) {
        if (in_first(b->rank_of(process) != MPI_UNDEFINED)) {
            processes.push_back(process);
        }
    }
    if (rest_of_second) {
        for (int process : b->world) {
            if (a->rank_of(process) == MPI_UNDEFINED) {
                processes.push_back(process);
            }
        }
    }
    return give(std::move(processes), newgroup);
}

}  // namespace
}  // namespace viaduct::mpi

using namespace viaduct::mpi;

VIADUCT_MPI(Group_size, (MPI_Group group, int* size)) {
    Call call("MPI_Group_size");
    VIADUCT_MPI_NEED(size)
    Group* found = group_of(group);
    if (!found) {
        return call.result(MPI_ERR_GROUP);
    }
    *size = found->size();
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Group_rank, (MPI_Group group, int* rank)) {
    Call call("MPI_Group_rank");
    VIADUCT_MPI_NEED(rank)
    Group* found = group_of(group);
    if (!found) {
        return call.result(MPI_ERR_GROUP);
    }
    *rank = found->rank;
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Group_translate_ranks, (MPI_Group group1, int n, const int ranks1[], MPI_Group group2, int ranks2[])) {
    Call call("MPI_Group_translate_ranks");
    Group* from = group_of(group1);
    Group* to = group_of(group2);
    if (!from || !to) {
        return call.result(MPI_ERR_GROUP);
    }
    if (n < 0 || (n > 0 && missing(ranks1, ranks2))) {
        return call.result(MPI_ERR_ARG);
    }
    return call.result(group_translate(*from, {ranks1, size_t(n)}, *to, ranks2));
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Group_compare, (MPI_Group group1, MPI_Group group2, int* result)) {
    Call call("MPI_Group_compare");
    VIADUCT_MPI_NEED(result)
    Group* a = group_of(group1);
    Group* b = group_of(group2);
    if (!a || !b) {
        return call.result(MPI_ERR_GROUP);
    }
    if (a->world == b->world) {
        *result = MPI_IDENT;
    } else {
        std::vector<int> x = a->world, y = b->world;
        std::sort(x.begin(), x.end());
        std::sort(y.begin(), y.end());
        *result = x == y ? MPI_SIMILAR : MPI_UNEQUAL;
    }
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Group_union, (MPI_Group group1, MPI_Group group2, MPI_Group* newgroup)) {
    Call call("MPI_Group_union");
    VIADUCT_MPI_NEED(newgroup)
    return call.result(combine(group1, group2, newgroup, [](bool) { return true; }, true));
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Group_intersection, (MPI_Group group1, MPI_Group group2, MPI_Group* newgroup)) {
    Call call("MPI_Group_intersection");
    VIADUCT_MPI_NEED(newgroup)
    return call.result(combine(group1, group2, newgroup, [](bool in_both) { return in_both; }, false));
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Group_difference, (MPI_Group group1, MPI_Group group2, MPI_Group* newgroup)) {
    Call call("MPI_Group_difference");
    VIADUCT_MPI_NEED(newgroup)
    return call.result(combine(group1, group2, newgroup, [](bool in_both) { return !in_both; }, false));
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Group_incl, (MPI_Group group, int n, const int ranks[], MPI_Group* newgroup)) {
    Call call("MPI_Group_incl");
    VIADUCT_MPI_NEED(newgroup)
    return call.result(select_members(group, n, ranks, newgroup, true));
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Group_excl, (MPI_Group group, int n, const int ranks[], MPI_Group* newgroup)) {
    Call call("MPI_Group_excl");
    VIADUCT_MPI_NEED(newgroup)
    return call.result(select_members(group, n, ranks, newgroup, false));
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Group_range_incl, (MPI_Group group, int n, int ranges[][3], MPI_Group* newgroup)) {
    Call call("MPI_Group_range_incl");
    VIADUCT_MPI_NEED(newgroup)
    return call.result(ranged(group, n, ranges, newgroup, true));
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Group_range_excl, (MPI_Group group, int n, int ranges[][3], MPI_Group* newgroup)) {
    Call call("MPI_Group_range_excl");
    VIADUCT_MPI_NEED(newgroup)
    return call.result(ranged(group, n, ranges, newgroup, false));
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Group_free, (MPI_Group * group)) {
    Call call("MPI_Group_free");
    VIADUCT_MPI_NEED(group)
    Group* found = group_of(*group);
    if (!found) {
        return call.result(MPI_ERR_GROUP);
    }
    group_release(found);
    *group = MPI_GROUP_NULL;
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()
