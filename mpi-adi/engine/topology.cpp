// SPDX-License-Identifier: BSD-2-Clause
// Arithmetic of topologies: coordinates, neighbours, balanced dimensions.
#include "mpi-adi/engine/topology.hpp"

#include <algorithm>

namespace viaduct::mpi {

int Topology::rank_at(std::span<const int> at) const {
    int rank = 0;
    for (size_t d = 0; d < dims.size(); ++d) {
        int c = at[d];
        if (c < 0 || c >= dims[d]) {
            if (!periods[d]) {
                return MPI_PROC_NULL;
            }
            c %= dims[d];
            c += c < 0 ? dims[d] : 0;
        }
        rank = rank * dims[d] + c;
    }
    return rank;
}

void Topology::coords_of(int rank, std::span<int> at) const {
    int below = 1;
    for (int d : dims) {
        below *= d;
    }
    for (size_t d = 0; d < dims.size() && d < at.size(); ++d) {
        below /= dims[d];
        at[d] = rank / below;
        rank %= below;
    }
}

int Topology::shifted(std::span<const int> from, int dimension, int displacement) const {
    std::vector<int> at(from.begin(), from.end());
    at[dimension] += displacement;
    return rank_at(at);
}

void Topology::list_neighbours(int rank) {
    if (kind == MPI_CART) {
        // The order of the standard: for each dimension the lower and then the upper neighbour.
        for (size_t d = 0; d < dims.size(); ++d) {
            for (int step : {-1, 1}) {
                int neighbour = shifted(coords, int(d), step);
                sources.push_back(neighbour);
                destinations.push_back(neighbour);
            }
        }
    } else if (kind == MPI_GRAPH) {
        int first = rank == 0 ? 0 : index[rank - 1];
        sources.assign(edges.begin() + first, edges.begin() + index[rank]);
        destinations = sources;
    }
}

namespace {

// Splits `n` into `parts` factors, descending, with the smallest possible greatest one; best[] is what was found so far.
void split(int n, int parts, int limit, std::vector<int>& chosen, std::vector<int>& best) {
    if (parts == 1) {
        if (n > limit) {
            return;
        }
        chosen.push_back(n);
        // Lexicographically smallest in descending order: the flattest.
        if (best.empty() || std::lexicographical_compare(chosen.begin(), chosen.end(), best.begin(), best.end())) {
            best = chosen;
        }
        chosen.pop_back();
        return;
    }
    for (int f = 1; f <= limit && f <= n; ++f) {
        if (n % f == 0 && (best.empty() || chosen.size() > 0 || f <= best[0])) {
            chosen.push_back(f);
            split(n / f, parts - 1, f, chosen, best);
            chosen.pop_back();
        }
    }
}

}  // namespace

int dims_create(int nodes, std::span<int> dims) {
    int free = 0;
    int64_t fixed = 1;
    for (int d : dims) {
        if (d < 0) {
            return MPI_ERR_DIMS;
        }
        free += d == 0;
        fixed *= d > 0 ? d : 1;
    }
    if (nodes < 1 || nodes % fixed != 0 || (free == 0 && fixed != nodes)) {
        return MPI_ERR_DIMS;
    }
    if (free == 0) {
        return MPI_SUCCESS;
    }
    std::vector<int> chosen, best;
    int rest = int(nodes / fixed);
    split(rest, free, rest, chosen, best);
    auto next = best.begin();
    for (int& d : dims) {
        if (d == 0) {
            d = *next++;
        }
    }
    return MPI_SUCCESS;
}

}  // namespace viaduct::mpi
