// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>

#include "utils/measure/machine.hpp"
#include "utils/vipperf/loops.hpp"

namespace viaduct::vipperf {

namespace {

constexpr size_t kTenths = 10;  // see stream.cpp
// The messages under way at once must not matter: that many messages can be posted in no time.
constexpr uint64_t kLeastTenth = 4 * Bundle::kSends;

double least_step(const std::vector<uint64_t>& stamps) {
    uint64_t least = UINT64_MAX;
    for (size_t i = 1; i < stamps.size(); ++i) least = std::min(least, stamps[i] - stamps[i - 1]);
    return static_cast<double>(least);
}

}  // namespace

uint64_t ticks() {
#if defined(__x86_64__) || defined(__i386__)
    return __builtin_ia32_rdtsc();
#else
    return static_cast<uint64_t>(now_ns());
#endif
}

Measured measure(Bundle& bundle, const Run& run, bool leader) {
    const bool latency = run.kind == Kind::latency;
    std::vector<uint64_t> stamps;
    stamps.reserve(latency && run.stamped != 0 ? run.iterations + 1 : kTenths + 2);
    const auto loop = latency ? latency_loop : stream_loop;
    bundle.prepare(run.bytes);
    if (run.warm_up != 0) loop(bundle, run, leader, run.warm_up, nullptr);

    const double used = measure::thread_seconds();
    const int64_t began = now_ns();
    const uint64_t first_tick = ticks();
    loop(bundle, run, leader, run.iterations, latency && run.stamped == 0 ? nullptr : &stamps);
    const uint64_t last_tick = ticks();
    const int64_t ended = now_ns();

    Measured taken;
    taken.ns = static_cast<double>(ended - began);
    taken.share = (measure::thread_seconds() - used) * 1e9 / std::max(taken.ns, 1.0);
    const double ns_per_tick = taken.ns / static_cast<double>(std::max<uint64_t>(last_tick - first_tick, 1));
    if (latency) {
        for (size_t i = 1; i < stamps.size(); ++i)
            taken.each_ns.push_back(static_cast<double>(stamps[i] - stamps[i - 1]) * ns_per_tick);
    } else if (const auto tenth = run.iterations / kTenths; tenth >= kLeastTenth && stamps.size() > 1) {
        taken.peak_ns = least_step(stamps) * ns_per_tick / static_cast<double>(tenth);
    }
    bundle.reap_all();
    return taken;
}

}  // namespace viaduct::vipperf
