// SPDX-License-Identifier: BSD-2-Clause
#include "utils/vipperf/report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "utils/common/stop.hpp"

namespace viaduct::vipperf {

namespace {

using measure::Distance;

constexpr int kTries = 4;  // of one sample that is disturbed every time
constexpr uint64_t kSpreadSizes[] = {8, 4096};

Series limit_series(Client& client, const char* name, Chart chart, Limit limit) {
    Series s;
    s.name = name;
    s.chart = chart;
    s.is_limit = true;
    s.measure = [&client, limit](uint64_t bytes, double* share) {
        *share = 1;
        return client.limit(limit, bytes);
    };
    return s;
}

Series test_series(Client& client, const ReportOptions& options, const char* name, Operation operation,
                   Completion completion, Kind kind, bool mapped) {
    Plan plan = options.base;
    plan.mapped = mapped ? 1 : plan.mapped;
    plan.operation = operation;
    plan.completion = completion;
    const uint32_t bundle = client.set_up(plan);
    Series s;
    s.name = name;
    s.chart = kind == Kind::latency ? Chart::latency : Chart::bandwidth;
    s.sleeps = completion == Completion::wait;
    s.measure = [&client, bundle, kind](uint64_t bytes, double* share) {
        if (bytes > client.largest(bundle)) return 0.0;
        const double ns = client.plain_ns(bundle, kind, bytes, share);
        return kind == Kind::latency ? ns : static_cast<double>(bytes) / ns;
    };
    return s;
}

std::vector<Series> all_series(Client& client, const ReportOptions& options) {
    std::vector<Series> all;
    if (options.with_limits) {
        all.push_back(limit_series(client, "limit: put into the other's cache", Chart::latency, Limit::put));
        all.push_back(limit_series(client, "limit: shared ring, two copies", Chart::latency, Limit::ring));
    }
    const auto add = [&](const char* name, Operation operation, Completion completion, Kind kind,
                         bool mapped = false) {
        all.push_back(test_series(client, options, name, operation, completion, kind, mapped));
    };
    const bool reads = (client.nic().attributes().RDMAReadSupport & options.base.level) != 0;
    add("send/receive, by queue", Operation::send, Completion::queue, Kind::latency);
    add("send/receive, by CQ", Operation::send, Completion::cq, Kind::latency);
    add("send/receive, waiting", Operation::send, Completion::wait, Kind::latency);
    add("RDMA write", Operation::write, Completion::queue, Kind::latency);
    add("RDMA write, mapped", Operation::write, Completion::queue, Kind::latency, true);
    if (reads) add("RDMA read (whole)", Operation::read, Completion::queue, Kind::latency);
    if (options.with_limits) {
        all.push_back(
            limit_series(client, "limit: shared ring, two copies", Chart::bandwidth, Limit::stream));
        all.push_back(limit_series(client, "limit: memcpy in one process", Chart::bandwidth, Limit::copy));
    }
    add("send/receive", Operation::send, Completion::queue, Kind::bandwidth);
    add("send/receive, by CQ", Operation::send, Completion::cq, Kind::bandwidth);
    add("RDMA write", Operation::write, Completion::queue, Kind::bandwidth);
    add("RDMA write, mapped", Operation::write, Completion::queue, Kind::bandwidth, true);
    if (reads) add("RDMA read", Operation::read, Completion::queue, Kind::bandwidth);
    return all;
}

// Taken again when the distance changed meanwhile or another thread had a processor; when that does not help
// it counts, and the report says so.
void take_sample(Client& client, Series& series, uint64_t bytes) {
    for (int tries = 1;; ++tries) {
        const Distance before = client.pair() ? client.distance() : Distance::near;
        double share = 1;
        const double value = series.measure(bytes, &share);
        const Distance after = client.pair() ? client.distance() : before;
        const bool quiet = before == after && (series.sleeps || share > measure::kOwnShare);
        if (!quiet && tries < kTries) continue;
        series.disturbed += quiet ? 0 : 1;
        if (value > 0) series.samples[static_cast<size_t>(before)][bytes].push_back(value);
        return;
    }
}

void take_spreads(Client& client, ReportOptions& options) {
    const std::pair<const char*, Completion> ways[] = {{"send/receive, by queue", Completion::queue},
                                                       {"send/receive, by CQ", Completion::cq},
                                                       {"send/receive, waiting", Completion::wait}};
    for (const auto& [name, completion] : ways) {
        Plan plan = options.base;
        plan.completion = completion;
        const uint32_t bundle = client.set_up(plan);
        for (const uint64_t bytes : kSpreadSizes) {
            if (bytes > client.largest(bundle)) continue;
            options.spreads.push_back({name, client.latency(bundle, bytes)});
        }
    }
}

}  // namespace

double Series::median_at(Distance d, uint64_t bytes) const {
    const auto& here = samples[static_cast<size_t>(d)];
    const auto found = here.find(bytes);
    return found == here.end() ? 0 : measure::median(found->second);
}

std::vector<Series> take_report(Client& client, ReportOptions& options,
                                const std::function<void(const std::string&)>& on_line) {
    options.with_limits = client.pair();
    std::vector<Series> all = all_series(client, options);
    for (int round = 1; round <= options.rounds && !tools::stopped(); ++round) {
        on_line(fmt::format("round {} of {}", round, options.rounds));
        for (const uint64_t bytes : options.sizes) {
            for (Series& series : all) {
                if (!tools::stopped()) take_sample(client, series, bytes);
            }
        }
    }
    take_spreads(client, options);
    return all;
}

const Series* reference(const std::vector<Series>& all, Chart chart) {
    for (const Series& s : all) {
        if (s.is_limit && s.chart == chart) return &s;
    }
    return nullptr;
}

bool any_at(const std::vector<Series>& all, Distance d) {
    return std::any_of(all.begin(), all.end(),
                       [d](const Series& s) { return !s.samples[static_cast<size_t>(d)].empty(); });
}

std::string title_of(Distance d, const ReportOptions& options) {
    return options.with_limits ? std::string(measure::name_of(d)) + " processors" : "as measured";
}

}  // namespace viaduct::vipperf
