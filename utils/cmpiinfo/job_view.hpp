// SPDX-License-Identifier: BSD-2-Clause
// What cmpiinfo shows: the job it runs in, the protocols, which one reaches which process, and the parameters.
// Taken from the engine after it has wired the job up; text and JSON are made of this alone.
#pragma once

#include <string>
#include <vector>

namespace viaduct::cmpiinfo {

struct ProtocolView {
    std::string name;
    bool ready = false;
    std::string reason;  // when not ready
    int exclusivity = 0;
    int latency_ns = 0;
    int bandwidth_mb = 0;
    size_t eager_limit = 0;
    bool put = false;
    bool get = false;
    bool words = false;  // atomic operations on memory of others
};

struct ParameterView {
    std::string name, value, standard, origin, help;
    long low = 0, high = 0;  // of a number; both 0: text
};

struct JobView {
    std::string launcher;
    int rank = 0;
    int size = 0;
    int nodes = 0;
    bool crowded = false;
    std::vector<std::string> hosts;              // by rank
    std::vector<std::vector<std::string>> ways;  // by rank and peer: the protocol
    std::vector<ProtocolView> protocols;
    std::vector<ParameterView> parameters;
};

// Joins the job, looks, and leaves it. Every rank calls it; only rank 0's view is whole. False when the job
// cannot be wired up; why has been said on standard error.
bool take_view(JobView* view);

std::string text_of(const JobView& view);
std::string json_of(const JobView& view);

}  // namespace viaduct::cmpiinfo
