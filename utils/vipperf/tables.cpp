// SPDX-License-Identifier: BSD-2-Clause
#include "utils/vipperf/tables.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/config/paths.hpp"

namespace viaduct::vipperf {

namespace {

using nlohmann::ordered_json;

const std::string kRule(119, '-');

const char* by(Completion c) {
    switch (c) {
        case Completion::queue:
            return "polling the queue";
        case Completion::cq:
            return "polling a completion queue";
        case Completion::wait:
            return "waiting on the queue";
        case Completion::cq_wait:
            return "waiting on a completion queue";
    }
    return "";
}

ordered_json row(const Latency& l) {
    return {{"bytes", l.bytes},
            {"iterations", l.iterations},
            {"t_min_us", l.us.least},
            {"t_max_us", l.us.most},
            {"t_typical_us", l.us.typical},
            {"t_avg_us", l.us.mean},
            {"t_stdev_us", l.us.deviation},
            {"p50_us", l.us.p50},
            {"p90_us", l.us.p90},
            {"p99_us", l.us.p99},
            {"p99.9_us", l.us.p999}};
}

ordered_json row(const Bandwidth& b) {
    return {{"bytes", b.bytes},
            {"iterations", b.iterations},
            {"bw_peak_mb_s", b.peak_mb_s},
            {"bw_average_mb_s", b.mb_s},
            {"msg_rate_mpps", b.million_s}};
}

}  // namespace

std::string heading_text(const Heading& h, const Test& t) {
    std::string out = kRule + "\n";
    const std::string title = fmt::format("{}{}, {}", t.both_ways ? "Bidirectional " : "",
                                          title_of(t.operation, t.kind), by(t.completion));
    out += fmt::format("{:^{}}\n", title, kRule.size());
    out += fmt::format(" NIC         : {:<40} Reliability : {}\n", h.nic + " " + h.local, h.level);
    out += fmt::format(" Peer        : {:<40} VIs         : {}{}{}\n", h.remote, h.vis,
                       h.checked ? ", every byte checked" : "", h.mapped ? ", mapped memory" : "");
    out += fmt::format(" Machine     : {}, {}\n", h.machine, h.date);
    return out + kRule + "\n";
}

std::string columns_text(const Test& t) {
    if (t.kind == Kind::bandwidth)
        return " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n";
    return " #bytes  #iterations   t_min[usec]    t_max[usec]    t_typical[usec]  t_avg[usec]  t_stdev[usec] "
           "   "
           "99% percentile[usec]   99.9% percentile[usec]\n";
}

std::string row_text(const Latency& l) {
    return fmt::format(" {:<7} {:<13} {:<14.3f} {:<14.3f} {:<16.3f} {:<12.3f} {:<16.3f} {:<22.3f} {:.3f}\n",
                       l.bytes, l.iterations, l.us.least, l.us.most, l.us.typical, l.us.mean, l.us.deviation,
                       l.us.p99, l.us.p999);
}

std::string row_text(const Bandwidth& b) {
    return fmt::format(" {:<11}{:<15}{:<19.2f}{:<21.2f}{:.6f}\n", b.bytes, b.iterations, b.peak_mb_s, b.mb_s,
                       b.million_s);
}

std::string json_of(const Heading& h, const std::vector<Result>& results) {
    ordered_json out = {{"schema", "viaduct/vipperf/1"},
                        {"tool", "vipperf"},    {"version", kVersion}, {"machine", h.machine},
                        {"date", h.date},       {"nic", h.nic},        {"local", h.local},
                        {"remote", h.remote},   {"vis", h.vis},        {"reliability", h.level},
                        {"checked", h.checked}, {"mapped", h.mapped}};
    out["tests"] = ordered_json::array();
    for (const Result& r : results) {
        ordered_json test = {{"test", name_of(r.test.operation, r.test.kind)},
                             {"completion", name_of(r.test.completion)},
                             {"both_ways", r.test.both_ways},
                             {"rows", ordered_json::array()}};
        for (const Latency& l : r.latencies) test["rows"].push_back(row(l));
        for (const Bandwidth& b : r.bandwidths) test["rows"].push_back(row(b));
        out["tests"].push_back(std::move(test));
    }
    return out.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace viaduct::vipperf
