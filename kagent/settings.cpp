// SPDX-License-Identifier: BSD-2-Clause
// From the configuration to the agent's settings; the keys are in core/config's table, section [agent].
#include "kagent/settings.hpp"

#include <sys/resource.h>

#include <algorithm>

namespace viaduct::kagent {

namespace {

constexpr uint64_t kOwnDescriptors = 24;  // log, sockets, libraries of providers, what is open for a moment

uint64_t descriptors_for_users() {
    rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return UserLimits().descriptors_of_all;
    const auto most = std::min<uint64_t>(files.rlim_cur, UserLimits().descriptors_of_all);
    return most - std::min(most / 4, kOwnDescriptors);
}

}  // namespace

AgentSettings AgentSettings::from(const Config& config) {
    AgentSettings s;
    const auto number = [&](const char* key) { return config.get_int("agent", key); };
    const auto count = [&](const char* key) {
        return static_cast<uint64_t>(std::max<int64_t>(number(key), 0));
    };
    s.configuration = config.fingerprint();
    s.linger_ms = number("linger_ms");
    s.ended_ms = std::max<int64_t>(number("ended_ms"), 0);
    s.grace_ms = std::max<int64_t>(number("grace_ms"), 0);
    s.confirm_ms = std::max<int64_t>(number("confirm_ms"), 1);
    s.max_incoming = std::max<int64_t>(number("max_incoming"), 1);
    s.client_stall_ms = std::max<int64_t>(number("client_stall_ms"), 1);
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
    s.limits.descriptors_of_all = descriptors_for_users();
    if (s.limits.descriptors == 0) s.limits.descriptors = s.limits.descriptors_of_all;
    s.limits.sessions = std::min(s.limits.sessions, uint64_t{1} << 32);  // sums with it must not wrap
    return s;
}

}  // namespace viaduct::kagent
