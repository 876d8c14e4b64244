// SPDX-License-Identifier: BSD-2-Clause
// Limits of time that hold on a busy machine, too. What a test allows is meant for a machine that gives its threads a
// processor when they want one; where a limit is passed, it is measured how much longer a thread takes just now to get
// on, and the limit becomes so many times as long. Nothing is measured, and nothing allowed, where the limit was kept.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <thread>
#include <type_traits>

namespace viaduct::tests {

// Wall time over processor time of a little work after a short sleep: the mean of the worse half of some. The load of
// the last minute counts as well, as far as one of these was as bad as half of that: it is by the worst that a limit is
// passed.
inline double slowness() {
    const auto now = [](clockid_t clock) {
        timespec t{};
        ::clock_gettime(clock, &t);
        return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
    };
    std::array<double, 15> found{};
    for (double& one : found) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        const double wall = now(CLOCK_MONOTONIC), busy = now(CLOCK_THREAD_CPUTIME_ID);
        double used = 0;
        while ((used = now(CLOCK_THREAD_CPUTIME_ID) - busy) < 0.002) {
        }
        one = std::max(1.0, (now(CLOCK_MONOTONIC) - wall) / used);
    }
    std::sort(found.begin(), found.end());
    double sum = 0;
    for (size_t i = found.size() / 2; i < found.size(); ++i) sum += found[i];
    const double mean = sum / static_cast<double>(found.size() - found.size() / 2);
    double load = 0;
    if (::getloadavg(&load, 1) != 1) load = 0;
    const double waiting = load / std::max(1U, std::thread::hardware_concurrency());
    return std::clamp(std::max(mean, std::min(waiting, 2 * found.back())), 1.0, 60.0);
}

// `limit`, or more when `taken` is above it: EXPECT_LE(took, slowed(limit, took)).
template <typename Limit, typename Taken>
Limit slowed(Limit limit, Taken taken) {
    if (taken <= limit) return limit;
    if constexpr (std::is_arithmetic_v<Limit>) {
        return static_cast<Limit>(static_cast<double>(limit) * slowness());
    } else {
        return Limit(static_cast<typename Limit::rep>(static_cast<double>(limit.count()) * slowness()));
    }
}

// Whether `done` comes true within `limit`, which is longer on a busy machine.
template <typename Limit, typename Done>
bool within(Limit limit, Done done, std::chrono::microseconds pause = std::chrono::microseconds(500)) {
    using Clock = std::chrono::steady_clock;
    const auto begun = Clock::now();
    const auto passed = [&](auto end) {
        while (!done()) {
            if (Clock::now() - begun > end) return false;
            std::this_thread::sleep_for(pause);
        }
        return true;
    };
    return passed(limit) || passed(slowed(limit, limit + limit));
}

}  // namespace viaduct::tests
