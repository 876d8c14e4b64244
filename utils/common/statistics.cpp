// SPDX-License-Identifier: BSD-2-Clause
#include "utils/common/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace viaduct::tools {

double percentile(const std::vector<double>& sorted, double share) {
    const auto count = static_cast<double>(sorted.size());
    const auto rank = static_cast<size_t>(std::ceil(share * count));
    return sorted[std::clamp<size_t>(rank, 1, sorted.size()) - 1];
}

Summary summarise(std::vector<double> samples) {
    Summary s;
    s.count = samples.size();
    if (samples.empty()) return s;
    const auto count = static_cast<double>(samples.size());
    s.mean = std::accumulate(samples.begin(), samples.end(), 0.0) / count;
    double squares = 0;
    for (const double value : samples) squares += (value - s.mean) * (value - s.mean);
    s.deviation = std::sqrt(squares / count);
    std::sort(samples.begin(), samples.end());
    s.least = samples.front();
    s.most = samples.back();
    s.p50 = s.typical = percentile(samples, 0.5);
    s.p90 = percentile(samples, 0.9);
    s.p99 = percentile(samples, 0.99);
    s.p999 = percentile(samples, 0.999);
    return s;
}

}  // namespace viaduct::tools
