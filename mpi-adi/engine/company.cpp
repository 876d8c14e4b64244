// SPDX-License-Identifier: BSD-2-Clause
#include "mpi-adi/engine/company.hpp"

#include <sched.h>

#include <algorithm>
#include <ctime>

namespace viaduct::mpi {
namespace {

// Dozens of ranks that only look for messages come round in less; a time slice, which ends at a tick of the
// kernel's clock, is mostly more.
constexpr int64_t kLongYield = 500'000;
// To ask again costs a slice of somebody else's, so it is asked more and more seldom.
constexpr int64_t kShortestBelief = 25'000'000;
constexpr int64_t kLongestBelief = 1'600'000'000;

int64_t steady_ns() {
    timespec now = {};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void yield() { ::sched_yield(); }

}  // namespace

Company company(steady_ns, yield);

void Company::give_way(unsigned long_ones) {
    const int64_t before = clock_();
    yield_();
    const int64_t now = clock_();
    if (now - before < kLongYield) {
        long_in_row_ = 0;
        until_ = 0;
        belief_ns_ = 0;
        return;
    }
    if (++long_in_row_ < long_ones) return;
    belief_ns_ = std::clamp(belief_ns_ * 2, kShortestBelief, kLongestBelief);
    until_ = now + belief_ns_;
}

bool Company::computes() { return until_ != 0 && clock_() < until_; }

}  // namespace viaduct::mpi
