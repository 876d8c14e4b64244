// SPDX-License-Identifier: BSD-2-Clause
// vipperf --report: every test over a range of sizes, in turns with the limits of the machine, and a page
// that shows the curves. Samples taken at different distances of the two processors are never mixed.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "utils/vipperf/tables.hpp"

namespace viaduct::vipperf {

inline constexpr const char* kReportSizes = "8,64,256,1K,4K,16K,64K,256K,1M,4M";

enum class Chart { latency, bandwidth };

struct Series {
    std::string name;
    Chart chart = Chart::latency;  // ns, or GB/s
    bool is_limit = false;
    std::function<double(uint64_t bytes, double* share)> measure;
    bool sleeps = false;  // the processors are meant to be idle for part of the time
    // By size, for each distance.
    std::map<uint64_t, std::vector<double>> samples[measure::kDistances] = {};
    int disturbed = 0;

    // 0: not measured.
    double median_at(measure::Distance, uint64_t bytes) const;
};

struct ReportOptions {
    std::vector<uint64_t> sizes;
    int rounds = 5;
    Plan base;
    Heading heading;
    // Filled in by take_report: the spread of single messages, of the distance found then.
    struct Spread {
        std::string name;
        Latency latency;
    };
    std::vector<Spread> spreads;
    bool with_limits = false;
};

std::vector<Series> take_report(Client&, ReportOptions&, const std::function<void(const std::string&)>& on_line);

// The series that others of its chart are compared with; nullptr when limits could not be measured.
const Series* reference(const std::vector<Series>&, Chart);
bool any_at(const std::vector<Series>&, measure::Distance);
std::string title_of(measure::Distance, const ReportOptions&);

std::string html_of(const ReportOptions&, const std::vector<Series>&);
std::string report_text(const ReportOptions&, const std::vector<Series>&);
std::string report_json(const ReportOptions&, const std::vector<Series>&);

}  // namespace viaduct::vipperf
