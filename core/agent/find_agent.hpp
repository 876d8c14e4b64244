// SPDX-License-Identifier: BSD-2-Clause
// Finding the agent's socket and getting connected to it, started if need be; no state. Used by AgentLink and
// by tools that want to say where the agent is.
#pragma once

#include <string>

#include "core/shm/segment.hpp"
#include "viaduct/provider.hpp"

namespace viaduct {

struct AgentPlace {
    std::string address;     // "@name": abstract, else a path
    std::string origin;      // how it was chosen, for people
    bool automatic = false;  // may be started by whoever needs it
};

AgentPlace agent_place();

// A connected, non-blocking, trusted socket. Starts the agent when nobody listens, the place is automatic and
// `start` says so; then waits for it until the deadline. ok | denied | broken, with `why` for people.
Status connect_agent(const AgentPlace& place, bool start, Deadline deadline, Fd* out, std::string* why);

}  // namespace viaduct
