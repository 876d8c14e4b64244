// SPDX-License-Identifier: BSD-2-Clause
// Affinity is kept for each thread, the quota for the process. Any thread, no lock (spec/performance R8).
#include "core/process/allowed_processors.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <exception>

#include "core/clock/clock.hpp"
#include "core/process/cpu_quota.hpp"

namespace viaduct {
namespace {

constexpr int64_t kAffinityValid = 100'000'000;  // ns, as below
constexpr int64_t kQuotaValid = 10'000'000'000;

// What our control groups grant, rounded up; a large number when they set no limit.
int quota_processors() try {
    const double granted = own_cpu_quota().processors;
    return granted > 0 && granted < CPU_SETSIZE ? static_cast<int>(std::ceil(granted)) : CPU_SETSIZE;
} catch (const std::exception&) {
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

int allowed_processor_count() {
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

}  // namespace viaduct
