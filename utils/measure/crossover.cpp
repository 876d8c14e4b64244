// SPDX-License-Identifier: BSD-2-Clause
#include "utils/measure/crossover.hpp"

#include <cmath>

namespace viaduct::measure {

namespace {

// Sum of the logarithms of the quotients, and how many there are.
double log_sum(const std::vector<Cost>& costs, const std::vector<Cost>& reference, size_t first,
               size_t* count) {
    double sum = 0;
    *count = 0;
    for (size_t i = first; i < costs.size(); ++i) {
        for (size_t kind = 0; kind < costs[i].ns.size(); ++kind) {
            sum += std::log(costs[i].ns[kind] / reference[i].ns[kind]);
            ++*count;
        }
    }
    return sum;
}

}  // namespace

double quotient_of(const std::vector<Cost>& costs, const std::vector<Cost>& reference) {
    size_t count = 0;
    const double sum = log_sum(costs, reference, 0, &count);
    return count == 0 ? 1 : std::exp(sum / static_cast<double>(count));
}

Crossover crossover(const std::vector<Cost>& one, const std::vector<Cost>& other, double gain) {
    Crossover best;
    double least = 0;
    for (size_t first = 0; first < other.size(); ++first) {
        size_t count = 0;
        const double sum = log_sum(other, one, first, &count);
        if (count == 0 || sum / static_cast<double>(count) > std::log(1 - gain) || sum > least) continue;
        least = sum;
        best.from = other[first].bytes;
    }
    best.quotient = quotient_of(joined(one, other, best.from), one);
    return best;
}

std::vector<Cost> joined(const std::vector<Cost>& one, const std::vector<Cost>& other, uint64_t from) {
    std::vector<Cost> costs = one;
    for (size_t i = 0; i < costs.size(); ++i)
        if (from != 0 && costs[i].bytes >= from) costs[i] = other[i];
    return costs;
}

}  // namespace viaduct::measure
