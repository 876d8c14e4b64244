// SPDX-License-Identifier: BSD-2-Clause
#include "kagent/descriptor_throttle.hpp"

#include <algorithm>

#include "core/clock/limits.hpp"

namespace viaduct::kagent {

namespace {

constexpr uint64_t kReserve = 8;               // the part of the quota that is kept for new processes
constexpr int64_t kBetweenCounts = 1'000'000;  // a count asks the kernel about each session of the user

}  // namespace

bool DescriptorThrottle::must_wait(uid_t user, int64_t now) {
    const auto is_short = [&] {
        return limits_.left(user, Quota::descriptors) < limits_.limit(Quota::descriptors) / kReserve;
    };
    auto wait = waits_.find(user);
    if (!is_short()) {
        if (wait != waits_.end()) waits_.erase(wait);
        return false;
    }
    if (wait != waits_.end() && now - wait->second.counted < kBetweenCounts) return wait->second.waits;
    const uint64_t in_flight = count_in_flight_(user);
    if (in_flight == 0 || !is_short()) {
        if (wait != waits_.end()) waits_.erase(wait);
        return false;
    }
    if (wait == waits_.end()) wait = waits_.emplace(user, Wait{}).first;
    Wait& w = wait->second;
    w.left_there = std::min(w.left_there, in_flight);
    const bool begins = !w.waits && in_flight > w.left_there;
    if (begins || in_flight < w.in_flight) w.until = now + limit_ns(TimeLimit::agent_descriptors);
    w.in_flight = in_flight;
    w.counted = now;
    if (now >= w.until) w.left_there = in_flight;
    w.waits = in_flight > w.left_there;
    return w.waits;
}

}  // namespace viaduct::kagent
