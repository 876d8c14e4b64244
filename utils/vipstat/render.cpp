// SPDX-License-Identifier: BSD-2-Clause
// The same views as text for people and as JSON for programs.
#include "utils/vipstat/render.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace viaduct::vipstat {

namespace {

using nlohmann::ordered_json;

std::string age_text(double s) {
    if (s < 0) return "-";
    if (s < 1) return fmt::format("{:.0f}ms", s * 1000);
    if (s < 100) return fmt::format("{:.1f}s", s);
    if (s < 6000) return fmt::format("{:.0f}m", s / 60);
    return fmt::format("{:.1f}h", s / 3600);
}

std::string rate_text(double per_second) {
    if (per_second < 0) return "-";
    if (per_second >= 1e6) return fmt::format("{:.2f}M", per_second / 1e6);
    if (per_second >= 1e4) return fmt::format("{:.1f}k", per_second / 1e3);
    return fmt::format("{:.0f}", per_second);
}

// "12+3": outstanding, and completed but not fetched.
std::string depth_text(const QueueView& q) {
    return q.unfetched == 0 ? fmt::format("{}", q.outstanding)
                            : fmt::format("{}+{}", q.outstanding, q.unfetched);
}

// The number of the oldest posted descriptor, since when it is waited for, and whether asleep.
std::string oldest_text(const QueueView& q) {
    if (q.outstanding == 0) return "-";
    return fmt::format("#{} {}{}", q.oldest, age_text(q.waiting_s), q.asleep ? " z" : "");
}

std::string life_text(const ProcessView& p) {
    if (p.ended_s >= 0) return fmt::format("ended {} ago, was {} old", age_text(p.ended_s), age_text(p.running_s));
    return fmt::format("{} old, {} VI{}", age_text(p.running_s), p.vis.size(), p.vis.size() == 1 ? "" : "s");
}

std::string fitted(std::string line, size_t columns) {
    if (columns != 0 && line.size() > columns) line.resize(columns);
    return line + "\n";
}

std::string list_of(const std::vector<std::pair<std::string, uint64_t>>& counters, bool zeros) {
    std::string out;
    for (const auto& [name, value] : counters) {
        if (value != 0 || zeros) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", name, value);
    }
    return out;
}

void add_vi(std::string& out, const ViView& v, const View& view) {
    const std::string error =
        v.last_error.empty() ? "-" : fmt::format("{} {} ago", v.last_error, age_text(v.last_error_s));
    out += fitted(
        fmt::format("  {:<14x} {:<10} {:>6} {:>8} {:>9} {:<16} {:>8} {:>9} {:<16} {:>7} {:<24} {}", v.handle,
                    v.state, age_text(v.state_s), depth_text(v.send), rate_text(v.send.per_second),
                    oldest_text(v.send), depth_text(v.recv), rate_text(v.recv.per_second),
                    oldest_text(v.recv), v.credits, error, v.peer.empty() ? "-" : v.peer),
        view.columns);
    const std::string counters = list_of(v.counters, view.counters);
    if (!counters.empty()) out += fitted("                 " + counters, view.columns);
}

ordered_json object_of(const std::vector<std::pair<std::string, uint64_t>>& counters) {
    ordered_json out = ordered_json::object();
    for (const auto& [name, value] : counters) out[name] = value;
    return out;
}

ordered_json or_null(double value) { return value < 0 ? ordered_json(nullptr) : ordered_json(value); }

ordered_json queue_json(const QueueView& q) {
    return {{"posted", q.posted},
            {"completed", q.completed},
            {"outstanding", q.outstanding},
            {"unfetched", q.unfetched},
            {"oldest", q.outstanding != 0 ? ordered_json(q.oldest) : ordered_json(nullptr)},
            {"waiting_s", or_null(q.waiting_s)},
            {"completions_per_s", or_null(q.per_second)},
            {"asleep", q.asleep}};
}

}  // namespace

std::string text(const std::vector<ProcessView>& processes, const View& view) {
    std::string out;
    for (const ProcessView& p : processes) {
        out += fitted(fmt::format("{} {}  libvipl {}, {}", p.pid, p.program, p.library, life_text(p)), view.columns);
        const std::string counters = list_of(p.counters, view.counters);
        if (!counters.empty()) out += fitted("  " + counters, view.columns);
        if (!p.vis.empty())
            out += fitted(
                fmt::format("  {:<14} {:<10} {:>6} {:>8} {:>9} {:<16} {:>8} {:>9} {:<16} {:>7} {:<24} {}",
                            "VI", "STATE", "FOR", "SENDS", "/s", "OLDEST", "RECVS", "/s", "OLDEST", "CREDITS",
                            "LAST ERROR", "PEER"),
                view.columns);
        const size_t shown = view.rows == 0 ? p.vis.size() : std::min(view.rows, p.vis.size());
        for (size_t i = 0; i < shown; ++i) add_vi(out, p.vis[i], view);
        if (shown < p.vis.size()) out += fmt::format("  ... and {} more\n", p.vis.size() - shown);
        for (const FailureView& f : p.failures)
            out += fitted(fmt::format("  {:>6} ago  {}", age_text(f.s), f.text), view.columns);
    }
    return out;
}

std::string json(const std::vector<ProcessView>& processes) {
    ordered_json out = {{"schema", "viaduct/vipstat/1"}, {"processes", ordered_json::array()}};
    for (const ProcessView& p : processes) {
        ordered_json one = {{"pid", p.pid},
                            {"program", p.program},
                            {"library", p.library},
                            {"running_s", p.running_s},
                            {"ended_s", or_null(p.ended_s)},
                            {"counters", object_of(p.counters)},
                            {"vis", ordered_json::array()}};
        for (const ViView& v : p.vis) {
            one["vis"].push_back(
                {{"handle", v.handle},
                 {"nic", v.nic},
                 {"state", v.state},
                 {"state_s", v.state_s},
                 {"reliability", v.level},
                 {"local", v.local},
                 {"peer", v.peer},
                 {"credits", v.credits},
                 {"last_error", v.last_error.empty() ? ordered_json(nullptr) : ordered_json(v.last_error)},
                 {"last_error_s", or_null(v.last_error_s)},
                 {"send", queue_json(v.send)},
                 {"recv", queue_json(v.recv)},
                 {"counters", object_of(v.counters)}});
        }
        one["failures"] = ordered_json::array();
        for (const FailureView& f : p.failures)
            one["failures"].push_back({{"age_s", f.s}, {"handle", f.handle}, {"times", f.times}, {"text", f.text}});
        out["processes"].push_back(std::move(one));
    }
    return out.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace viaduct::vipstat
