// SPDX-License-Identifier: BSD-2-Clause
// The report's medians as a table on the terminal, and all of it as JSON.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/config/paths.hpp"
#include "utils/vipperf/report.hpp"
#include "utils/vipperf/sizes.hpp"

namespace viaduct::vipperf {

namespace {

using measure::Distance;
using nlohmann::ordered_json;

constexpr Distance kAll[] = {Distance::near, Distance::far, Distance::remote};

std::string table(const ReportOptions& options, const std::vector<Series>& all, Chart chart, Distance d) {
    const Series* by = reference(all, chart);
    std::string out =
        fmt::format("\n{}, {}\n{:<36}", chart == Chart::latency ? "latency, ns" : "bandwidth, GB/s",
                    title_of(d, options), "");
    for (const uint64_t bytes : options.sizes) out += fmt::format("{:>20}", size_text(bytes));
    out += "\n";
    for (const Series& s : all) {
        if (s.chart != chart || s.samples[static_cast<size_t>(d)].empty()) continue;
        out += fmt::format("{:<36}", s.name);
        for (const uint64_t bytes : options.sizes) {
            const double value = s.median_at(d, bytes);
            const double unit = by != nullptr && by != &s ? by->median_at(d, bytes) : 0;
            const int digits = value < 1000 * unit ? 2 : 0;
            const std::string ratio = unit > 0 && value > 0 ? fmt::format("{:.{}f}x", value / unit, digits) : "";
            out += value > 0 ? fmt::format("{:>11.{}f} {:>8}", value,
                                           value < 10     ? 2
                                           : value < 1000 ? 1
                                                          : 0,
                                           ratio)
                             : fmt::format("{:>20}", "");
        }
        out += s.disturbed != 0 ? "  disturbed\n" : "\n";
    }
    return out;
}

}  // namespace

std::string report_text(const ReportOptions& options, const std::vector<Series>& all) {
    const Heading& h = options.heading;
    std::string out =
        fmt::format("{} {}, {}, {} rounds\n{}\n", h.nic, h.local, h.date, options.rounds, h.machine);
    for (const Distance d : kAll) {
        if (!any_at(all, d)) continue;
        out += table(options, all, Chart::latency, d);
        out += table(options, all, Chart::bandwidth, d);
    }
    return out;
}

std::string report_json(const ReportOptions& options, const std::vector<Series>& all) {
    const Heading& h = options.heading;
    ordered_json out = {{"schema", "viaduct/vipperf-report/1"},
                        {"tool", "vipperf"},  {"version", kVersion},    {"machine", h.machine},
                        {"date", h.date},     {"nic", h.nic},           {"local", h.local},
                        {"remote", h.remote}, {"reliability", h.level}, {"rounds", options.rounds}};
    out["series"] = ordered_json::array();
    for (const Series& s : all) {
        for (const Distance d : kAll) {
            const auto& samples = s.samples[static_cast<size_t>(d)];
            if (samples.empty()) continue;
            ordered_json one = {{"name", s.name},
                                {"unit", s.chart == Chart::latency ? "ns" : "GB/s"},
                                {"limit", s.is_limit},
                                {"disturbed", s.disturbed},
                                {"points", ordered_json::array()}};
            if (options.with_limits) one["distance"] = measure::name_of(d);
            for (const auto& [bytes, values] : samples)
                one["points"].push_back(
                    {{"bytes", bytes}, {"median", s.median_at(d, bytes)}, {"samples", values}});
            out["series"].push_back(std::move(one));
        }
    }
    return out.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace viaduct::vipperf
