// SPDX-License-Identifier: BSD-2-Clause
// The findings as a page of HTML: no script, nothing from elsewhere. All text of processes is escaped.
#include <fmt/format.h>

#include <algorithm>

#include "utils/common/html.hpp"
#include "utils/viptrace/findings.hpp"

namespace viaduct::viptrace {

namespace {

using tools::escaped;

constexpr const char* kHead = R"html(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>viptrace</title><style>
:root { color-scheme: light dark; --line: #8886; --bar: #2a7de1; }
body { font: 14px/1.4 system-ui, sans-serif; margin: 1rem; }
h1 { font-size: 1.2rem; } h2 { font-size: 1rem; margin: 1.2rem 0 .3rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { text-align: left; padding: .15rem .6rem; border-bottom: 1px solid var(--line); white-space: nowrap; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
svg { height: 28px; vertical-align: middle; } rect { fill: var(--bar); }
</style></head><body><h1>viptrace</h1>
)html";

std::string cell(const std::string& text) { return "<td>" + escaped(text) + "</td>"; }
std::string number(const std::string& text) { return "<td class=\"number\">" + escaped(text) + "</td>"; }
std::string time(double ns) { return number(time_text(ns)); }

// `columns`: with a minus sign in front: numbers.
std::string table(const std::string& title, const std::vector<std::string>& columns,
                  const std::vector<std::string>& rows) {
    if (rows.empty()) return "";
    std::string out = "<h2>" + escaped(title) + "</h2><div class=\"wide\"><table><tr>";
    for (const std::string& column : columns)
        out += column[0] == '-' ? "<th class=\"number\">" + escaped(column.substr(1)) + "</th>"
                                : "<th>" + escaped(column) + "</th>";
    out += "</tr>\n";
    for (const std::string& row : rows) out += "<tr>" + row + "</tr>\n";
    return out + "</table></div>\n";
}

std::string histogram(const SizeClass& c) {
    constexpr int kWidth = 8, kHeight = 28;
    const uint32_t most = *std::max_element(c.histogram.begin(), c.histogram.end());
    std::string out =
        fmt::format("<svg viewBox=\"0 0 {0} {1}\" width=\"{0}\" role=\"img\"><title>", kWidth * kTimeClasses, kHeight);
    out +=
        escaped(fmt::format("messages by time, from {} on, each bar twice the time of the one before", time_text(128)));
    out += "</title>";
    for (size_t i = 0; i < kTimeClasses; ++i) {
        if (c.histogram[i] == 0) continue;
        const double height = std::max(1.0, static_cast<double>(kHeight) * c.histogram[i] / most);
        out += fmt::format("<rect x=\"{}\" y=\"{:.1f}\" width=\"{}\" height=\"{:.1f}\"><title>{}: {}</title></rect>",
                           i * kWidth, kHeight - height, kWidth - 1, height,
                           escaped(time_text(static_cast<double>(uint64_t{128} << i))), c.histogram[i]);
    }
    return out + "</svg>";
}

std::string name_or_dash(const std::vector<Process>& all, int process) {
    return process < 0 ? "-" : all[static_cast<size_t>(process)].name();
}

}  // namespace

std::string page(const std::vector<Process>& all, const Matched& m, const Findings& f) {
    std::vector<std::string> processes, sizes, waits, longest;
    for (const Process& p : all)
        processes.push_back(cell(p.name()) + number(std::to_string(p.pid)) + cell(p.program) + cell(p.host) +
                            number(std::to_string(p.events.size())) + number(std::to_string(p.lost)));
    for (const SizeClass& c : f.sizes)
        sizes.push_back(number(size_text(c)) + number(std::to_string(c.ns.count)) + time(c.ns.least) +
                        time(c.ns.typical) + time(c.ns.p99) + time(c.ns.most) + "<td>" + histogram(c) + "</td>");
    for (const Waits& w : f.waits)
        waits.push_back(cell(all[w.process].name()) + cell(name_or_dash(all, w.peer)) +
                        number(std::to_string(w.count)) + time(static_cast<double>(w.total_ns)) +
                        time(static_cast<double>(w.longest_ns)));
    for (const Call& c : f.longest) {
        const Seen& e = all[c.process].events[c.begin];
        longest.push_back(time(static_cast<double>(c.ns)) + cell(name_of(e.what)) + cell(all[c.process].name()) +
                          number(std::to_string(e.thread)) + cell(name_or_dash(all, peer_of(all, m, c))) +
                          time(static_cast<double>(e.ns)) + cell(c.ended ? "" : "not ended"));
    }
    return kHead +
           table("Processes", {"process", "-number", "program", "host", "-events", "-older ones lost"}, processes) +
           table("From post to fetched receive, by size",
                 {"-bytes", "-messages", "-least", "-median", "-99 %", "-most", "times"}, sizes) +
           table("Who waits for whom", {"process", "for", "-times", "-total", "-longest"}, waits) +
           table("Longest waits", {"-time", "call", "process", "-thread", "for", "-begins", ""}, longest) +
           fmt::format("<p>{} errors.</p></body></html>\n", f.errors);
}

}  // namespace viaduct::viptrace
