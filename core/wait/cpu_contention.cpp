// SPDX-License-Identifier: BSD-2-Clause
#include "core/wait/cpu_contention.hpp"

#include <algorithm>

namespace viaduct {
namespace {

// Dozens of ranks that only look for messages come round in less; a time slice, which ends at a tick of the
// kernel's clock, is mostly more.
constexpr int64_t kLongYield = 500'000;
// A probe costs a time slice of another thread, so probes become rarer and rarer.
constexpr int64_t kShortestValidity = 25'000'000;
constexpr int64_t kLongestValidity = 1'600'000'000;

}  // namespace

void CpuContention::give_way(unsigned long_ones) {
    if (off_) return yield_();
    const int64_t before = clock_();
    yield_();
    const int64_t now = clock_();
    if (now - before < kLongYield) {
        if (long_in_row_.load(std::memory_order_relaxed) == 0) return;
        long_in_row_.store(0, std::memory_order_relaxed);
        until_.store(0, std::memory_order_relaxed);
        valid_for_ns_.store(0, std::memory_order_relaxed);
        return;
    }
    if (long_in_row_.fetch_add(1, std::memory_order_relaxed) + 1 < long_ones) return;
    const int64_t validity =
        std::clamp(valid_for_ns_.load(std::memory_order_relaxed) * 2, kShortestValidity, kLongestValidity);
    valid_for_ns_.store(validity, std::memory_order_relaxed);
    until_.store(now + validity, std::memory_order_relaxed);
}

bool CpuContention::computes() {
    const int64_t until = until_.load(std::memory_order_relaxed);
    return until != 0 && clock_() < until;
}

}  // namespace viaduct
