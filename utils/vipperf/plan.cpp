// SPDX-License-Identifier: BSD-2-Clause
#include "utils/vipperf/plan.hpp"

#include <vipl.h>

#include <array>

namespace viaduct::vipperf {

namespace {

constexpr std::array kOperations = {"send", "write", "read"};
constexpr std::array kOperationTitles = {"Send", "RDMA write", "RDMA read"};
constexpr std::array kCompletions = {"queue", "cq", "wait", "cq_wait"};
constexpr uint64_t kMostIterations = 100'000'000;
constexpr uint64_t kMostStamps = 10'000'000;
constexpr uint32_t kMostDepth = 4096;

}  // namespace

std::string fault_of(const Plan& plan) {
    const bool known = static_cast<size_t>(plan.operation) < kOperations.size() &&
                       static_cast<size_t>(plan.completion) < kCompletions.size();
    if (!known) return "unknown kind of test";
    if (plan.vis == 0 || plan.vis > kMostVis) return "too many VIs";
    if (plan.max_bytes == 0 || plan.max_bytes > kMostBytes) return "messages too long";
    if (plan.depth < 4 || plan.depth > kMostDepth) return "impossible queue depth";
    if (plan.level != VIP_SERVICE_UNRELIABLE && plan.level != VIP_SERVICE_RELIABLE_DELIVERY &&
        plan.level != VIP_SERVICE_RELIABLE_RECEPTION)
        return "unknown reliability level";
    return {};
}

std::string fault_of(const Run& run, const Plan& plan) {
    if (static_cast<size_t>(run.kind) > 1) return "unknown kind of test";
    if (run.bytes == 0 || run.bytes > plan.max_bytes) return "impossible size of message";
    if (run.iterations == 0 || run.iterations > kMostIterations || run.warm_up > kMostIterations)
        return "impossible number of iterations";
    if (run.stamped != 0 && run.iterations > kMostStamps) return "too many iterations for times of each";
    return {};
}

std::string name_of(Operation operation, Kind kind) {
    return std::string(kOperations[static_cast<size_t>(operation)]) +
           (kind == Kind::latency ? "_lat" : "_bw");
}

std::string name_of(Completion c) { return kCompletions[static_cast<size_t>(c)]; }

std::optional<Completion> completion_named(const std::string& name) {
    for (size_t i = 0; i < kCompletions.size(); ++i) {
        if (name == kCompletions[i]) return static_cast<Completion>(i);
    }
    return std::nullopt;
}

bool test_named(const std::string& name, Operation* operation, Kind* kind) {
    for (size_t i = 0; i < kOperations.size(); ++i) {
        for (const Kind k : {Kind::latency, Kind::bandwidth}) {
            if (name != name_of(static_cast<Operation>(i), k)) continue;
            *operation = static_cast<Operation>(i);
            *kind = k;
            return true;
        }
    }
    return false;
}

std::string title_of(Operation operation, Kind kind) {
    return std::string(kOperationTitles[static_cast<size_t>(operation)]) +
           (kind == Kind::latency ? " latency" : " bandwidth");
}

}  // namespace viaduct::vipperf
