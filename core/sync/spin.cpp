// SPDX-License-Identifier: BSD-2-Clause
#include "core/sync/spin.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <new>

#include "core/clock/clock.hpp"
#include "core/process/cpu_quota.hpp"
#include "core/sync/pause.hpp"

namespace viaduct {

namespace {

constexpr int64_t kAffinityValid = 100'000'000;  // programs pin themselves at any time
constexpr int64_t kQuotaValid = 10'000'000'000;  // quotas hardly change
constexpr int64_t kProbeEvery = 200'000;         // a yield of 0.35 us in 200 us of polling costs nothing
constexpr int64_t kProbeAlone = 20'000;          // the same where all who want to run want this processor
constexpr int64_t kPlainYield = 350;             // upper guess of a yield that nobody else uses, ns
constexpr int64_t kSwitches = 4;                 // two switches take longer than so many of those: a call whose code
                                                 // is in no cache takes up to three, switches take six and more
constexpr uint32_t kPausesBetweenYields = 32;    // about 0.7 us
constexpr uint32_t kQuickLooks = 128;  // about 3 us: the answer of a peer that polls is here by then
constexpr uint32_t kYieldsWhenCrowded = 64;
constexpr uint32_t kYieldsBetweenQuestions = 8;

// Rises by two when a yield has let somebody run, falls by one when not: two such yields make a crowd, one does
// where only one processor is allowed, and four vain ones end it. To be bound to a processor is no crowd: ranks
// and servers are, each to one of its own.
constexpr int kCrowdAt = 4;
constexpr int kCrowdOnOneAt = 2;
constexpr int kCrowdMost = 8;
std::atomic<int> crowd_score{0};
std::atomic<int64_t> quickest_yield{kPlainYield};

// What our control groups grant, rounded up; a large number when they set no limit.
int quota_processors() try {
    const double granted = own_cpu_quota().processors;
    return granted > 0 && granted < CPU_SETSIZE ? static_cast<int>(std::ceil(granted)) : CPU_SETSIZE;
} catch (const std::bad_alloc&) {
    return CPU_SETSIZE;
}

int affinity_processors() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof set, &set) != 0)
        return static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
    return CPU_COUNT(&set);
}

}  // namespace

int allowed_processors() {
    static std::atomic<int64_t> quota_until{0};
    static std::atomic<int> quota{CPU_SETSIZE};
    // Affinity belongs to the thread.
    thread_local int64_t affinity_until = 0;
    thread_local int affinity = 1;
    const int64_t now = now_ns();
    if (now >= affinity_until) {
        affinity = affinity_processors();
        affinity_until = now + kAffinityValid;
        if (now >= quota_until.load(std::memory_order_relaxed)) {
            quota_until.store(now + kQuotaValid, std::memory_order_relaxed);
            quota.store(quota_processors(), std::memory_order_relaxed);
        }
    }
    return std::max(1, std::min(affinity, quota.load(std::memory_order_relaxed)));
}

bool crowded() {
    const int score = crowd_score.load(std::memory_order_relaxed);
    return score >= kCrowdAt || (score >= kCrowdOnOneAt && allowed_processors() == 1);
}

void yield_processor() {
    const int64_t before = now_ns();
    ::sched_yield();
    const int64_t took = now_ns() - before;
    const int64_t quickest = quickest_yield.load(std::memory_order_relaxed);
    if (took < quickest) quickest_yield.store(took, std::memory_order_relaxed);
    const int score = crowd_score.load(std::memory_order_relaxed);
    const int changed = took > kSwitches * quickest ? std::min(score + 2, kCrowdMost) : std::max(score - 1, 0);
    if (changed != score) crowd_score.store(changed, std::memory_order_relaxed);
}

void between_polls() {
    const bool crowd = crowded();
    crowd_hint.store(crowd, std::memory_order_relaxed);
    if (crowd) {
        yield_processor();
        return;
    }
    thread_local int64_t next_probe = 0;
    const int64_t now = now_ns();
    if (now < next_probe) return;
    next_probe = now + (allowed_processors() == 1 ? kProbeAlone : kProbeEvery);
    yield_processor();
}

void give_way() {
    thread_local uint32_t times = 0;
    yield_processor();
    if (++times % kYieldsBetweenQuestions == 0) crowd_hint.store(crowded(), std::memory_order_relaxed);
}

bool SpinWait::step() {
    if (spin_ns_ <= 0) return false;
    // Asking costs about a pause: once per round of pauses, and after each yield.
    if (looks_++ % kPausesBetweenYields == 0 || crowded_) crowded_ = crowded();
    if (crowded_) {
        // Whoever we wait for may need this processor; when it has run so often without an answer, sleep.
        if (++yields_ > kYieldsWhenCrowded) return false;
        yield_processor();
        return true;
    }
    cpu_pause();
    if (looks_ < kQuickLooks || looks_ % kPausesBetweenYields != 0) return true;
    const int64_t now = now_ns();
    if (began_ == 0) began_ = now;
    if (now - began_ > spin_ns_) return false;
    yield_processor();
    return true;
}

}  // namespace viaduct
