// SPDX-License-Identifier: BSD-2-Clause
// What vipperf has measured, as perftest's columns for people and as JSON for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "utils/vipperf/client.hpp"

namespace viaduct::vipperf {

struct Test {
    Operation operation = Operation::send;
    Kind kind = Kind::latency;
    Completion completion = Completion::queue;
    bool both_ways = false;
};

struct Result {
    Test test;
    std::vector<Latency> latencies;
    std::vector<Bandwidth> bandwidths;
};

struct Heading {
    std::string nic, local, remote, machine, date;
    uint32_t vis = 1;
    std::string level;
    bool checked = false;
    bool mapped = false;
};

std::string heading_text(const Heading&, const Test&);
std::string columns_text(const Test&);
std::string row_text(const Latency&);
std::string row_text(const Bandwidth&);
std::string json_of(const Heading&, const std::vector<Result>&);

}  // namespace viaduct::vipperf
