// SPDX-License-Identifier: BSD-2-Clause
// Topologies: coordinates and ranks, neighbours, balanced dimensions.
#include "mpi-adi/engine/topology.hpp"

#include <gtest/gtest.h>

namespace viaduct::mpi {
namespace {

Topology grid(const std::vector<int>& dims, const std::vector<int>& periods, int rank) {
    Topology made;
    made.kind = MPI_CART;
    made.dims = dims;
    made.periods = periods;
    made.coords.resize(dims.size());
    made.coords_of(rank, made.coords);
    return made;
}

TEST(Topology, CoordinatesAndRanksAreInverse) {
    Topology t = grid({3, 4, 2}, {0, 0, 0}, 0);
    for (int rank = 0; rank < 24; ++rank) {
        int at[3];
        t.coords_of(rank, at);
        EXPECT_EQ(t.rank_at(at), rank);
    }
}

TEST(Topology, LeavingAGridWrapsOnlyWherePeriodic) {
    Topology t = grid({3, 4}, {1, 0}, 0);
    EXPECT_EQ(t.shifted(t.coords, 0, -1), 8);
    EXPECT_EQ(t.shifted(t.coords, 0, 7), 4);
    EXPECT_EQ(t.shifted(t.coords, 1, -1), MPI_PROC_NULL);
}

TEST(Topology, NeighboursOfAGridAreLowerThenUpperPerDimension) {
    Topology t = grid({3, 3}, {0, 1}, 4);
    t.list_neighbours(4);
    EXPECT_EQ(t.sources, (std::vector<int>{1, 7, 3, 5}));
    EXPECT_EQ(t.destinations, t.sources);
}

TEST(Topology, DimensionsAreAsEvenAsCanBe) {
    int three[] = {0, 0, 0};
    EXPECT_EQ(dims_create(24, three), MPI_SUCCESS);
    EXPECT_EQ((std::vector<int>{three, three + 3}), (std::vector<int>{4, 3, 2}));
    int fixed[] = {0, 4, 0};
    EXPECT_EQ(dims_create(48, fixed), MPI_SUCCESS);
    EXPECT_EQ((std::vector<int>{fixed, fixed + 3}), (std::vector<int>{4, 4, 3}));
    int prime[] = {0, 0};
    EXPECT_EQ(dims_create(7, prime), MPI_SUCCESS);
    EXPECT_EQ(prime[0], 7);
    EXPECT_EQ(prime[1], 1);
}

TEST(Topology, DimensionsThatDoNotDivideAreRefused) {
    int dims[] = {0, 5};
    EXPECT_EQ(dims_create(12, dims), MPI_ERR_DIMS);
    int negative[] = {-1, 0};
    EXPECT_EQ(dims_create(12, negative), MPI_ERR_DIMS);
}

}  // namespace
}  // namespace viaduct::mpi
