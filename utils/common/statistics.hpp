// SPDX-License-Identifier: BSD-2-Clause
// Samples of a duration, and what is said of them: least, most, median, mean, deviation, percentiles.
#pragma once

#include <cstddef>
#include <vector>

namespace viaduct::tools {

struct Summary {
    size_t count = 0;
    double least = 0;
    double most = 0;
    double typical = 0;  // median
    double mean = 0;
    double deviation = 0;  // standard deviation
    double p50 = 0, p90 = 0, p99 = 0, p999 = 0;
};

// The sample below which `share` (0 to 1) of them lie, nearest rank. `sorted` must not be empty.
double percentile(const std::vector<double>& sorted, double share);

// All zero when there is no sample.
Summary summarise(std::vector<double> samples);

}  // namespace viaduct::tools
