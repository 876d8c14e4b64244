// SPDX-License-Identifier: BSD-2-Clause
// The view as text for people and as JSON for programs: the same facts.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "utils/cmpiinfo/job_view.hpp"

namespace viaduct::cmpiinfo {
namespace {

using Json = nlohmann::ordered_json;

// Beyond that a matrix is no longer read, but its rows still are.
constexpr size_t kWidestMatrix = 16;

std::string text_of_limit(size_t bytes) { return bytes == SIZE_MAX ? "any" : std::to_string(bytes); }

std::string remote_access(const ProtocolView& one) {
    if (one.put && one.get) return one.words ? "write, read, atomics" : "write, read";
    if (one.put) return "write";
    return one.get ? "read" : "-";
}

std::string text_of_protocols(const JobView& view) {
    std::string text = fmt::format("{:<10}{:>12}{:>12}{:>16}{:>18}  {}\n", "protocol", "exclusivity",
                                   "latency ns", "bandwidth MB/s", "no handshake to", "remote access");
    for (const ProtocolView& one : view.protocols) {
        if (one.ready)
            text +=
                fmt::format("{:<10}{:>12}{:>12}{:>16}{:>18}  {}\n", one.name, one.exclusivity, one.latency_ns,
                            one.bandwidth_mb, text_of_limit(one.eager_limit), remote_access(one));
        else
            text += fmt::format("{:<10}not here: {}\n", one.name, one.reason);
    }
    return text;
}

std::string text_of_ways(const JobView& view) {
    std::string text;
    if (view.ways.size() > kWidestMatrix) {
        for (size_t rank = 0; rank < view.ways.size(); rank++) {
            text += fmt::format("{:>5} on {}:", rank, view.hosts[rank]);
            for (const auto& way : view.ways[rank]) text += " " + way;
            text += "\n";
        }
        return text;
    }
    text += fmt::format("{:>5}", "rank");
    for (size_t peer = 0; peer < view.ways.size(); peer++) text += fmt::format("{:>6}", peer);
    text += "  host\n";
    for (size_t rank = 0; rank < view.ways.size(); rank++) {
        text += fmt::format("{:>5}", rank);
        for (const auto& way : view.ways[rank]) text += fmt::format("{:>6}", way);
        text += "  " + view.hosts[rank] + "\n";
    }
    return text;
}

}  // namespace

std::string text_of(const JobView& view) {
    std::string text = fmt::format(
        "{} {} on {} {}, wired up by {}; ranks that wait {}\n\n", view.size,
        view.size == 1 ? "process" : "processes", view.nodes, view.nodes == 1 ? "node" : "nodes",
        view.launcher, view.crowded ? "give way and sleep: more of them than processors" : "spin");
    text += text_of_protocols(view) + "\n" + text_of_ways(view) + "\n";
    for (const ParameterView& one : view.parameters) {
        const std::string value = one.value.empty() ? "(empty)" : one.value;
        const std::string range = one.high != 0 ? fmt::format(" ({} to {})", one.low, one.high) : "";
        text += fmt::format("{} = {}  [{}]\n    {}{}\n", one.name, value, one.origin, one.help, range);
    }
    return text;
}

std::string json_of(const JobView& view) {
    Json json = {{"schema", "viaduct/cmpiinfo/1"},
                 {"launcher", view.launcher},
                 {"processes", view.size},
                 {"nodes", view.nodes},
                 {"crowded", view.crowded}};
    json["hosts"] = view.hosts;
    json["ways"] = view.ways;
    for (const ProtocolView& one : view.protocols) {
        Json entry = {{"name", one.name}, {"ready", one.ready}};
        if (one.ready) {
            entry["exclusivity"] = one.exclusivity;
            entry["latency_ns"] = one.latency_ns;
            entry["bandwidth_mb_per_s"] = one.bandwidth_mb;
            entry["eager_limit"] = one.eager_limit;
            entry["remote_write"] = one.put;
            entry["remote_read"] = one.get;
            entry["remote_atomics"] = one.words;
        } else {
            entry["reason"] = one.reason;
        }
        json["protocols"].push_back(entry);
    }
    for (const ParameterView& one : view.parameters)
        json["parameters"].push_back({{"name", one.name},
                                      {"value", one.value},
                                      {"default", one.standard},
                                      {"origin", one.origin},
                                      {"help", one.help},
                                      {"low", one.low},
                                      {"high", one.high}});
    return json.dump(2) + "\n";
}

}  // namespace viaduct::cmpiinfo
