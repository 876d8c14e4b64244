// SPDX-License-Identifier: BSD-2-Clause
// Virtual topologies of communicators: Cartesian grids, graphs, and graphs given by each process's own edges.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <span>
#include <vector>

namespace viaduct::mpi {

struct Topology {
    int kind = MPI_UNDEFINED;  // MPI_CART, MPI_GRAPH or MPI_DIST_GRAPH

    // Cartesian
    std::vector<int> dims, periods, coords;
    // Graph: neighbours of rank r are edges[index[r - 1]] to edges[index[r]]
    std::vector<int> index, edges;
    // Distributed graph; a Cartesian grid and a graph have these lists as well, for collective calls with neighbours
    std::vector<int> sources, source_weights, destinations, destination_weights;
    bool weighted = false;

    // Cartesian: rank at coordinates, wrapped where periodic; MPI_PROC_NULL outside of the grid.
    int rank_at(std::span<const int> at) const;
    void coords_of(int rank, std::span<int> at) const;
    // Rank `displacement` steps along a dimension from coordinates.
    int shifted(std::span<const int> from, int dimension, int displacement) const;
    // Fills sources and destinations of a grid or graph for a rank.
    void list_neighbours(int rank);
};

// Fills the zeros of dims so that the product is `nodes`, as even as can be, not increasing. An MPI error class
// otherwise.
[[nodiscard]] int dims_create(int nodes, std::span<int> dims);

}  // namespace viaduct::mpi
