// SPDX-License-Identifier: BSD-2-Clause
#include "providers/verbs/port_watch.hpp"

#include <algorithm>

#include "core/clock/limits.hpp"
#include "core/log/log.hpp"
#include "providers/verbs/nic.hpp"
#include "providers/verbs/progress.hpp"

namespace viaduct::verbs {

int64_t port_down_limit(const NicSettings& settings) {
    const int64_t one_try = int64_t{4096} << settings.ack_timeout;
    return std::max<int64_t>(4 * one_try * (settings.retries + 1), limit_ns(TimeLimit::verbs_port_down));
}

void handle_port_event(NicContext& nic, const ibv_async_event& event, int64_t now) {
    if (event.element.port_num != nic.port) return;
    if (event.event_type == IBV_EVENT_PORT_ACTIVE) {
        nic.port_lost_at = kNever;
    } else if (event.event_type == IBV_EVENT_PORT_ERR && nic.port_lost_at == kNever) {
        nic.port_lost_at = now + port_down_limit(nic.settings);
    }
}

Deadline watch_port(NicContext& nic, int64_t now) {
    if (now < nic.port_lost_at) return nic.port_lost_at;  // kNever: it is up
    nic.port_lost_at = kNever;
    VIADUCT_LOG(warn, "verbs", "%s: its port has been down for too long", nic.info.name);
    for (Link* link : all_links(nic)) lose_link(*link);
    return kNever;
}

}  // namespace viaduct::verbs
