// SPDX-License-Identifier: BSD-2-Clause
// Processes that have ended, as far as the agent keeps why their calls had failed. Starts no agent.
#pragma once

#include <vector>

#include "core/agent/link.hpp"
#include "utils/vipstat/watch.hpp"

namespace viaduct::vipstat {

class EndedLook {
public:
    EndedLook();
    // Of these; none: of all that this user may see. The oldest first. Empty, too, when there is no agent to ask.
    std::vector<ProcessView> look(const std::vector<pid_t>& pids, Watch& watch);

private:
    AgentLink link_;
};

}  // namespace viaduct::vipstat
