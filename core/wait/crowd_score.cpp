// SPDX-License-Identifier: BSD-2-Clause
// See crowd_score.hpp (spec/performance R8).
#include "core/wait/crowd_score.hpp"

#include <sched.h>

#include <algorithm>

#include "core/clock/clock.hpp"
#include "core/process/allowed_processors.hpp"

namespace viaduct {
namespace {

constexpr int64_t kProbeEvery = 200'000;  // a yield of 0.35 us in 200 us of polling costs nothing
constexpr int64_t kProbeAlone = 20'000;   // the same where all threads compete for this processor
constexpr uint32_t kYieldsBetweenQuestions = 8;

CrowdScore crowd_score;
thread_local bool can_sleep = false;
std::atomic<bool> giving_way{true};

}  // namespace

void CrowdScore::yielded(int64_t took, int64_t now) {
    const int64_t quickest = quickest_.load(std::memory_order_relaxed);
    if (took < quickest) quickest_.store(took, std::memory_order_relaxed);
    const int score = score_.load(std::memory_order_relaxed);
    const int changed = took > kSwitches * quickest ? std::min(score + 2, kMost) : std::max(score - 1, 0);
    if (changed != score) score_.store(changed, std::memory_order_relaxed);
    const int64_t before = average_.load(std::memory_order_relaxed);
    const int64_t average = before + (std::min(took, kMostCounted) - before) / 8;
    average_.store(average, std::memory_order_relaxed);
    if (took >= kLongYield && average >= kLongYield) {
        const int64_t validity =
            std::clamp(2 * valid_for_.load(std::memory_order_relaxed), kShortestValidity, kLongestValidity);
        valid_for_.store(validity, std::memory_order_relaxed);
        until_.store(now + validity, std::memory_order_relaxed);
    } else if (average < kLongYield && valid_for_.load(std::memory_order_relaxed) != 0) {
        valid_for_.store(0, std::memory_order_relaxed);
    }
}

void switch_giving_way(bool on) { giving_way.store(on, std::memory_order_relaxed); }
bool gives_way() { return giving_way.load(std::memory_order_relaxed); }

bool crowded() { return crowd_score.many() || (crowd_score.some() && allowed_processor_count() == 1); }

void yield_processor() {
    const int64_t before = now_ns();
    ::sched_yield();
    const int64_t now = now_ns();
    crowd_score.yielded(now - before, now);
}

bool others_compute() { return crowd_score.computes(now_ns()); }

void WaitThatCanSleep::tell(bool begins) { can_sleep = begins; }

void between_polls() {
    const bool crowd = gives_way() && crowded();
    crowd_hint.store(crowd, std::memory_order_relaxed);
    if (crowd) {
        if (!can_sleep || !others_compute()) yield_processor();
        return;
    }
    thread_local int64_t next_probe = 0;
    const int64_t now = now_ns();
    if (now < next_probe) return;
    next_probe = now + (allowed_processor_count() == 1 ? kProbeAlone : kProbeEvery);
    if (gives_way()) yield_processor();
}

void give_way() {
    thread_local uint32_t times = 0;
    if (!can_sleep || !others_compute()) yield_processor();
    if (++times % kYieldsBetweenQuestions == 0) crowd_hint.store(crowded(), std::memory_order_relaxed);
}

}  // namespace viaduct
