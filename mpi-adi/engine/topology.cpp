// SPDX-License-Identifier: BSD-2-Clause
// Arithmetic of topologies: coordinates, neighbours, balanced dimensions.
#include "mpi-adi/engine/topology.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

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

std::vector<int> divisors_of(int n) {
    std::vector<int> low, high;
    for (int d = 1; int64_t(d) * d <= n; ++d) {
        if (n % d == 0) {
            low.push_back(d);
            if (d != n / d) {
                high.push_back(n / d);
            }
        }
    }
    low.insert(low.end(), high.rbegin(), high.rend());
    return low;
}

// The split of a number into descending factors whose first and last are nearest to each other; of equal ones that with
// the largest first factor, then that of the smallest sum, then that with the larger factors in front, which is what
// other MPI libraries give.
class Splitter {
  public:
    Splitter(int n, int parts) : divisors_(divisors_of(n)) { split(n, parts, n); }
    const std::vector<int>& best() const { return best_; }

  private:
    void split(int n, int parts, int limit) {
        if (parts == 0) {
            if (n == 1 && (best_.empty() || measure(chosen_) <= measure(best_))) {
                best_ = chosen_;
            }
            return;
        }
        for (int f : divisors_) {
            if (f > limit || f > n) {
                break;
            }
            // Nothing below the root can be the largest of what is left; what is too far below the first is no gain.
            bool too_small = std::pow(double(f), parts) < double(n) * (1 - 1e-9);
            bool too_far = !best_.empty() && !chosen_.empty() && chosen_[0] - f > spread(best_);
            if (n % f == 0 && !too_small && !too_far) {
                chosen_.push_back(f);
                split(n / f, parts - 1, f);
                chosen_.pop_back();
            }
        }
    }
    static std::tuple<int, int, int64_t> measure(const std::vector<int>& factors) {
        return {spread(factors), -factors.front(), std::accumulate(factors.begin(), factors.end(), int64_t(0))};
    }
    static int spread(const std::vector<int>& factors) { return factors.front() - factors.back(); }

    std::vector<int> divisors_, chosen_, best_;
};

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
    Splitter splitter(int(nodes / fixed), free);
    auto next = splitter.best().begin();
    for (int& d : dims) {
        if (d == 0) {
            d = *next++;
        }
    }
    return MPI_SUCCESS;
}

}  // namespace viaduct::mpi
