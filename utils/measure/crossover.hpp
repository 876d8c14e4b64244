// SPDX-License-Identifier: BSD-2-Clause
// From what length of message on another way of moving it is the better one. Arithmetic only.
#pragma once

#include <cstdint>
#include <vector>

namespace viaduct::measure {

// What one message of each size takes by one way, ns: smaller is better. One value for each kind of
// measurement (latency, stream), the same kinds in all.
struct Cost {
    uint64_t bytes = 0;
    std::vector<double> ns;
};

struct Crossover {
    uint64_t from = 0;    // messages of so many bytes and more go the other way; 0: none do
    double quotient = 1;  // geometric mean, over all sizes and kinds, of what that takes against `one` alone
};

// `one` and `other` have the same sizes in rising order. Messages of the least size and more may go the
// other way from each size on; it has to be better by `gain` (0.05: five hundredths), in the mean of the
// sizes it is taken for, so that noise changes nothing.
Crossover crossover(const std::vector<Cost>& one, const std::vector<Cost>& other, double gain);

// The costs when messages from `from` on go the other way (0: none do).
std::vector<Cost> joined(const std::vector<Cost>& one, const std::vector<Cost>& other, uint64_t from);

// Geometric mean of the quotients of two lists of costs.
double quotient_of(const std::vector<Cost>& costs, const std::vector<Cost>& reference);

}  // namespace viaduct::measure
