// SPDX-License-Identifier: BSD-2-Clause
// How many iterations of a run fit into a sample. On a slow or crowded machine the fewest may be too many.
#pragma once

#include <algorithm>
#include <cstdint>

namespace viaduct::vipperf {

constexpr uint64_t kFewest = 16;

// `ns_of(n)` runs n iterations and returns how many nanoseconds they took. Two short tries: the second has
// warm caches.
template <class NsOf>
uint64_t fitting(double sample_ns, uint64_t most, NsOf&& ns_of) {
    uint64_t iterations = kFewest;
    for (const double share : {0.1, 1.0}) {
        const double each = std::max(ns_of(iterations) / static_cast<double>(iterations), 1.0);
        // Clamped as a number of its own kind: more than 2^64 may fit.
        const double fit = std::min(sample_ns * share / each, static_cast<double>(most));
        iterations = std::clamp(static_cast<uint64_t>(fit), kFewest, most);
    }
    return iterations;
}

}  // namespace viaduct::vipperf
