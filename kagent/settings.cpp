// SPDX-License-Identifier: BSD-2-Clause
// From the configuration to the agent's settings; the keys are in core/config's table, section [agent].
#include "kagent/settings.hpp"

#include <sys/resource.h>

#include <algorithm>

namespace viaduct::kagent {

namespace {

// Half of what this process may open: one user alone cannot leave nothing for the others.
uint64_t half_of_all_descriptors() {
    rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY)
        return UserLimits().descriptors;
    return files.rlim_cur / 2;
}

}  // namespace

AgentSettings AgentSettings::from(const Config& config) {
    AgentSettings s;
    const auto number = [&](const char* key) { return config.get_int("agent", key); };
    const auto count = [&](const char* key) {
        return static_cast<uint64_t>(std::max<int64_t>(number(key), 0));
    };
    s.linger_ms = number("linger_ms");
    s.grace_ms = std::max<int64_t>(number("grace_ms"), 0);
    s.confirm_ms = std::max<int64_t>(number("confirm_ms"), 1);
    s.max_incoming = std::max<int64_t>(number("max_incoming"), 1);
    s.deaf_ms = std::max<int64_t>(number("deaf_ms"), 1);
    s.cross_user = config.get_bool("agent", "cross_user");
    s.strict_names = config.get_bool("names", "strict");
    s.default_provider = config.get("names", "default_provider");
    s.limits.sessions = count("max_sessions");
    s.limits.contexts = count("max_contexts");
    s.limits.vis = count("max_vis");
    s.limits.cqs = count("max_cqs");
    s.limits.regions = count("max_regions");
    s.limits.registered_bytes = count("max_registered_bytes");
    s.limits.outstanding = count("max_outstanding");
    s.limits.descriptors = count("max_descriptors");
    if (s.limits.descriptors == 0) s.limits.descriptors = half_of_all_descriptors();
    s.limits.sessions = std::min(s.limits.sessions, uint64_t{1} << 32);  // sums with it must not wrap
    return s;
}

}  // namespace viaduct::kagent
