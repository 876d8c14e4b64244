// SPDX-License-Identifier: BSD-2-Clause
// What the configuration says to the agent, read once at its start.
#pragma once

#include <cstdint>
#include <string>

#include "core/config/config.hpp"

namespace viaduct::kagent {

// What one user may have at a time, over all his processes.
struct UserLimits {
    uint64_t sessions = 4096;
    uint64_t contexts = 4096;
    uint64_t vis = 262144;
    uint64_t cqs = 262144;
    uint64_t regions = 4'194'304;
    uint64_t registered_bytes = uint64_t{1} << 46;
    uint64_t outstanding = 65536;  // waits, requests and accepts not answered yet
    uint64_t descriptors = 65536;  // files that the agent holds for him; and as many as he has stay free
    uint64_t descriptors_of_all = uint64_t{1} << 20;
};

struct AgentSettings {
    std::string configuration;  // Config::fingerprint, to see whether the agent has read a change
    uint32_t flaws = 0;  // told to clients (core/agent/own_limits.hpp); not from the configuration
    int64_t linger_ms = 2000;  // negative: never leaves
    int64_t ended_ms = 60'000;  // so long the failures of a process that has ended are kept
    int64_t grace_ms = 100;
    int64_t confirm_ms = 5000;
    int64_t max_incoming = 1024;
    int64_t client_stall_ms = 30'000;  // so long a client may leave its answers untaken
    bool cross_user = false;
    bool strict_names = false;
    std::string default_provider = "paramnet";
    UserLimits limits;

    static AgentSettings from(const Config& config);
};

}  // namespace viaduct::kagent
