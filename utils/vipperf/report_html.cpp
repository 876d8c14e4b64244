// SPDX-License-Identifier: BSD-2-Clause
// The page: one file, readable without a network, in light and dark.
#include <fmt/format.h>

#include <algorithm>

#include "core/config/paths.hpp"
#include "utils/common/html.hpp"
#include "utils/vipperf/chart.hpp"
#include "utils/vipperf/report.hpp"
#include "utils/vipperf/sizes.hpp"

namespace viaduct::vipperf {

namespace {

using measure::Distance;

constexpr const char* kStyle = R"css(
:root { color-scheme: light dark; --paper: #fff; --ink: #1c2430; --soft: #5b6675; --line: #dfe4ea; --fine: #eff2f5;
  --band: #f6f8fa;
  --c0: #0b62c4; --c1: #0f8a6d; --c2: #8a5bd1; --c3: #d1480f; --c4: #b3238a; --c5: #7a6a00; --l: #7b8794; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #12161c; --ink: #e3e8ee; --soft: #98a4b3; --line: #2b333d; --fine: #1e242c; --band: #181d24;
    --c0: #63a9ff; --c1: #43c9a6; --c2: #b795f5; --c3: #ff9263; --c4: #f07cc8; --c5: #d6c24a; --l: #8d99a8; } }
body { background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; max-width: 960px;
  margin: 2.5em auto; padding: 0 1.2em; }
h1 { font-size: 1.7em; margin: 0 0 .2em; letter-spacing: -.01em; }
h2 { font-size: 1.25em; margin: 2.2em 0 .3em; border-bottom: 1px solid var(--line); padding-bottom: .25em; }
h3 { font-size: 1em; margin: 1.6em 0 .3em; } p, dl { color: var(--soft); margin: .3em 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1em 1.1em; }
dt { font-weight: 600; } dd { margin: 0; color: var(--ink); }
svg { width: 100%; height: auto; font: 12px system-ui, sans-serif; margin: .4em 0 .2em; }
.grid { stroke: var(--line); } .fine { stroke: var(--fine); } .tick, .axis { fill: var(--soft); }
.axis { text-anchor: end; }
.curve { fill: none; stroke-width: 2.2; stroke-linejoin: round; }
.lead { fill: none; stroke-width: .8; opacity: .55; } .name { font-size: 12.5px; }
.c0 { --k: var(--c0); } .c1 { --k: var(--c1); } .c2 { --k: var(--c2); } .c3 { --k: var(--c3); }
.c4 { --k: var(--c4); } .c5 { --k: var(--c5); }
.l0, .l1 { --k: var(--l); } .curve, .lead { stroke: var(--k); } .dot, .name { fill: var(--k); }
.curve.l0 { stroke-dasharray: 6 4; } .curve.l1 { stroke-dasharray: 2 4; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13px; width: 100%; }
th, td { padding: .28em .6em; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
th { color: var(--soft); font-weight: 600; } tr.limit td { color: var(--soft); background: var(--band); }
td small { color: var(--soft); display: block; font-size: 11px; line-height: 1.1; }
)css";

// The same way of moving data has the same colour in every chart.
std::string colour_of(const Series& s) {
    if (s.is_limit) return s.name.ends_with("copies") == (s.chart == Chart::bandwidth) ? "l0" : "l1";
    if (s.name.ends_with("mapped")) return "c5";
    if (s.name.starts_with("RDMA")) return s.name.starts_with("RDMA write") ? "c3" : "c4";
    return s.name.ends_with("CQ") ? "c1" : s.name.ends_with("waiting") ? "c2" : "c0";
}

// Three digits, without zeros that say nothing: "1.5", "12", "120".
std::string digits(double value) {
    std::string text = fmt::format("{:.{}f}", value, value >= 100 ? 0 : value >= 10 ? 1 : 2);
    if (text.find('.') != std::string::npos) {
        text.erase(text.find_last_not_of('0') + 1);
        if (text.back() == '.') text.pop_back();
    }
    return text;
}

std::string time_label(double ns) {
    if (ns >= 1e6) return digits(ns / 1e6) + " ms";
    if (ns >= 1000) return digits(ns / 1000) + " µs";
    return fmt::format("{:.0f} ns", ns);
}

std::string rate_label(double gb) { return gb < 0.095 ? fmt::format("{:.3g}", gb) : digits(gb); }

std::vector<Curve> curves_of(const std::vector<Series>& all, Chart chart, Distance d, const Series* by) {
    std::vector<Curve> curves;
    for (const Series& s : all) {
        if (s.chart != chart || (by != nullptr && s.is_limit)) continue;
        Curve curve{s.name, colour_of(s), {}};
        for (const auto& [bytes, samples] : s.samples[static_cast<size_t>(d)]) {
            const double unit = by != nullptr ? by->median_at(d, bytes) : 1;
            if (unit > 0) curve.points.emplace_back(bytes, s.median_at(d, bytes) / unit);
        }
        curves.push_back(std::move(curve));
    }
    return curves;
}

// Those of which something was measured at that distance.
std::vector<uint64_t> sizes_at(const ReportOptions& options, const std::vector<Series>& all, Chart chart,
                               Distance d) {
    std::vector<uint64_t> sizes;
    std::copy_if(options.sizes.begin(), options.sizes.end(), std::back_inserter(sizes), [&](uint64_t bytes) {
        return std::any_of(all.begin(), all.end(),
                           [&](const Series& s) { return s.chart == chart && s.median_at(d, bytes) > 0; });
    });
    return sizes;
}

// Medians, and below each how often the reference it is.
std::string table_of(const ReportOptions& options, const std::vector<Series>& all, Chart chart, Distance d) {
    const Series* by = reference(all, chart);
    const std::vector<uint64_t> sizes = sizes_at(options, all, chart, d);
    std::string out = "<div class=\"scroll\"><table><tr><th></th>";
    for (const uint64_t bytes : sizes) out += "<th>" + size_text(bytes) + "</th>";
    out += "</tr>\n";
    for (const Series& s : all) {
        if (s.chart != chart || s.samples[static_cast<size_t>(d)].empty()) continue;
        out += fmt::format("<tr{}><td>{}{}</td>", s.is_limit ? " class=\"limit\"" : "", tools::escaped(s.name),
                           s.disturbed != 0 ? " *" : "");
        for (const uint64_t bytes : sizes) {
            const double value = s.median_at(d, bytes);
            const double unit = by != nullptr && by != &s ? by->median_at(d, bytes) : 0;
            out += "<td>";
            if (value > 0) out += chart == Chart::latency ? time_label(value) : rate_label(value);
            if (value > 0 && unit > 0) out += fmt::format("<small>{:.2f}×</small>", value / unit);
            out += "</td>";
        }
        out += "</tr>\n";
    }
    return out + "</table></div>\n";
}

std::string message_rates(const ReportOptions& options, const std::vector<Series>& all, Distance d) {
    std::string out = "<h3>Messages a second, millions</h3>\n<div class=\"scroll\"><table><tr><th></th>";
    std::vector<uint64_t> small = sizes_at(options, all, Chart::bandwidth, d);
    std::erase_if(small, [](uint64_t bytes) { return bytes > 4096; });
    if (small.empty()) return {};
    for (const uint64_t bytes : small) out += "<th>" + size_text(bytes) + "</th>";
    out += "</tr>\n";
    for (const Series& s : all) {
        if (s.chart != Chart::bandwidth || s.samples[static_cast<size_t>(d)].empty() ||
            s.name.starts_with("limit: memcpy"))
            continue;
        out += fmt::format("<tr{}><td>{}</td>", s.is_limit ? " class=\"limit\"" : "", tools::escaped(s.name));
        for (const uint64_t bytes : small) {
            const double value = s.median_at(d, bytes);
            out += value > 0 ? fmt::format("<td>{:.1f}</td>", value * 1000 / static_cast<double>(bytes))
                             : "<td></td>";
        }
        out += "</tr>\n";
    }
    return out + "</table></div>\n";
}

std::string section(const ReportOptions& options, const std::vector<Series>& all, Distance d) {
    std::string out = fmt::format("<h2>{}{}</h2>\n", options.with_limits ? "On " : "", title_of(d, options));
    out += "<h3>Latency: half a round trip (RDMA read: the whole)</h3>\n";
    out += svg_of({"latency by size", "", true, time_label}, curves_of(all, Chart::latency, d, nullptr));
    out += table_of(options, all, Chart::latency, d);
    if (const Series* by = reference(all, Chart::latency); by != nullptr) {
        out += "<h3>The same, as a multiple of the limit “put into the other's cache”</h3>\n";
        out += svg_of({"ratio to the limit", "×", true, digits}, curves_of(all, Chart::latency, d, by));
    }
    out += "<h3>Bandwidth, one way, GB/s (10⁹ bytes)</h3>\n";
    out +=
        svg_of({"bandwidth by size", "GB/s", true, rate_label}, curves_of(all, Chart::bandwidth, d, nullptr));
    out += table_of(options, all, Chart::bandwidth, d);
    return out + message_rates(options, all, d);
}

std::string spreads(const ReportOptions& options) {
    std::string out =
        "<h2>How single messages spread</h2>\n<p>Half round trips in µs, the time of each taken: reading the "
        "clock is "
        "part of them.</p>\n<div "
        "class=\"scroll\"><table><tr><th></th><th>bytes</th><th>messages</th><th>least</th>"
        "<th>50 %</th><th>90 %</th><th>99 %</th><th>99.9 %</th><th>most</th><th>mean</th></tr>\n";
    for (const ReportOptions::Spread& s : options.spreads) {
        const tools::Summary& us = s.latency.us;
        out += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td>", tools::escaped(s.name),
                           size_text(s.latency.bytes), s.latency.iterations);
        for (const double value : {us.least, us.p50, us.p90, us.p99, us.p999, us.most, us.mean})
            out += fmt::format("<td>{:.3f}</td>", value);
        out += "</tr>\n";
    }
    return out + "</table></div>\n";
}

}  // namespace

std::string html_of(const ReportOptions& options, const std::vector<Series>& all) {
    const Heading& h = options.heading;
    std::string out = fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
        "content=\"width=device-width\"><title>vipperf: {} {}</title><style>{}</style></head><body>\n",
        tools::escaped(h.nic), tools::escaped(h.date), kStyle);
    out += fmt::format("<h1>{} as VIPL programs see it</h1>\n<dl>", tools::escaped(h.nic));
    const std::pair<const char*, std::string> facts[] = {
        {"Measured", h.date + " by vipperf " + kVersion},
        {"Machine", h.machine},
        {"From, to", h.local + ", " + h.remote},
        {"Reliability", h.level},
        {"Rounds", fmt::format("{}, medians shown; all series and limits in turns", options.rounds)},
    };
    for (const auto& [name, value] : facts)
        out += fmt::format("<dt>{}</dt><dd>{}</dd>", name, tools::escaped(value));
    out += "</dl>\n";
    if (options.with_limits)
        out +=
            "<p>Limits are what two processes of this machine reach without any protocol, measured in the "
            "same run. "
            "Small numbers below a figure: how many times the first limit it is.</p>\n";
    for (const Distance d : {Distance::near, Distance::far, Distance::remote}) {
        if (any_at(all, d)) out += section(options, all, d);
    }
    if (!options.spreads.empty()) out += spreads(options);
    const bool disturbed =
        std::any_of(all.begin(), all.end(), [](const Series& s) { return s.disturbed != 0; });
    if (disturbed)
        out +=
            "<p>* Another thread had a processor during some of these samples, or the distance changed.</p>\n";
    return out + "</body></html>\n";
}

}  // namespace viaduct::vipperf
