// SPDX-License-Identifier: BSD-2-Clause
// Groups: ranks, translation, ranges, lifetime of handles.
#include "mpi-adi/engine/group.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace viaduct::mpi {
namespace {

std::vector<int> stepped(int n, int step) {
    std::vector<int> ranks(static_cast<size_t>(n));
    for (int i = 0; i < n; ++i) {
        ranks[size_t(i)] = i * step;
    }
    return ranks;
}

TEST(Group, FindsRanksInSmallAndLargeOnes) {
    for (int n : {1, 5, 16, 17, 1000}) {
        Group group(stepped(n, 3), 3 * (n - 1));
        EXPECT_EQ(group.rank, n - 1);
        for (int r = 0; r < n; ++r) {
            EXPECT_EQ(group.rank_of(3 * r), r);
        }
        EXPECT_EQ(group.rank_of(1), MPI_UNDEFINED);
    }
}

TEST(Group, TranslatesRanksAndKeepsTheNullProcess) {
    Group all(stepped(10, 1), 0), even(stepped(5, 2), 0);
    const int ranks[] = {4, 3, MPI_PROC_NULL};
    int out[3];
    EXPECT_EQ(group_translate(all, ranks, even, out), MPI_SUCCESS);
    EXPECT_EQ(out[0], 2);
    EXPECT_EQ(out[1], MPI_UNDEFINED);
    EXPECT_EQ(out[2], MPI_PROC_NULL);
    const int bad[] = {10};
    EXPECT_EQ(group_translate(all, bad, even, out), MPI_ERR_RANK);
}

TEST(Group, RangesGoBothWays) {
    Group all(stepped(10, 1), 0);
    const int ranges[][3] = {{0, 3, 2}, {9, 5, -2}};
    std::vector<int> ranks;
    EXPECT_EQ(expand_ranges(all, 2, ranges, ranks), MPI_SUCCESS);
    EXPECT_EQ(ranks, (std::vector<int>{0, 2, 9, 7, 5}));
}

TEST(Group, RangesThatCannotBeAreRefused) {
    Group all(stepped(10, 1), 0);
    std::vector<int> ranks;
    const int zero[][3] = {{0, 3, 0}}, beyond[][3] = {{0, 10, 1}}, wrong_way[][3] = {{3, 0, 1}},
              twice[][3] = {{0, 3, 1}, {3, 3, 1}};
    EXPECT_EQ(expand_ranges(all, 1, zero, ranks), MPI_ERR_ARG);
    EXPECT_EQ(expand_ranges(all, 1, beyond, ranks), MPI_ERR_RANK);
    ranks.clear();
    EXPECT_EQ(expand_ranges(all, 1, wrong_way, ranks), MPI_ERR_ARG);
    EXPECT_EQ(expand_ranges(all, 2, twice, ranks), MPI_ERR_RANK);
}

TEST(Group, EmptyOneHasOneHandleForEver) {
    EXPECT_EQ(group_publish(new Group({}, 0)), MPI_GROUP_EMPTY);
    EXPECT_EQ(group_of(MPI_GROUP_EMPTY)->size(), 0);
    EXPECT_EQ(group_of(MPI_GROUP_NULL), nullptr);
}

TEST(Group, HandleEndsWithTheLastReference) {
    auto* group = new Group({4, 2}, 2);
    MPI_Group handle = group_publish(group);
    group_retain(group);
    group_release(group);
    EXPECT_EQ(group_of(handle), group);
    group_release(group);
    EXPECT_EQ(group_of(handle), nullptr);
}

}  // namespace
}  // namespace viaduct::mpi
