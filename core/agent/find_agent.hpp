// SPDX-License-Identifier: BSD-2-Clause
// Finding the agent's socket and getting connected to it, started if need be. Used by AgentLink and by tools that have
// to say where the agent is.
#pragma once

#include <array>
#include <string>

#include "core/shm/segment.hpp"
#include "viaduct/provider.hpp"

namespace viaduct {

struct AgentPlace {
    std::string address;     // "@name": abstract, else a path
    std::string origin;      // how it was chosen, for people
    bool automatic = false;  // may be started by the first process that needs it
};

AgentPlace agent_place();

// The search of one process for an agent: its right to start one, and the agent that it has started last. The search
// outlives an attempt whose deadline has passed, so that callers with short deadlines do not each start an agent. Used
// by one thread at a time.
//
// The rights are abstract names, one for each turn; they vanish when their holder ends. The process keeps them until
// there is an agent. Without them, each of many processes that start at once would start an agent, and all but one
// would be useless.
class AgentSearch {
public:
    AgentSearch();
    // Goes on with what was begun for that address a moment ago, or begins anew.
    void begin(const std::string& address);
    // Ends it. Frees no memory: a forked child calls this.
    void let_go();
    // No agent is started for so long after begin(). ns.
    void let_others_first(int64_t ns) { others_first_ = ns; }
    // This process has a right that it has not used, or the agent it has started has died.
    bool may_start() { return !others_are_first() && ((now_is_due() && child_has_died()) || take_right()); }
    // ok | broken, with `why`.
    Status start_one(std::string* why);
    const std::string& started() const { return started_; }  // of the last one, for people; empty: none

private:
    static constexpr int kMostTurns = 8;

    bool take_right();
    bool child_has_died() const;
    bool now_is_due() const;
    bool others_are_first() const;

    std::string address_, started_;
    std::array<Fd, kMostTurns> held_;
    Fd child_;
    bool child_ended_ = false;
    int turn_ = 0, rights_ = 0;
    int64_t begun_ = 0, seen_ = 0;
    int64_t due_ = 0, interval_ = 0;  // of the next turn
    int64_t next_birth_ = 0, restart_pause_ = 0;
    int64_t others_first_ = 0;
};

// A connected, non-blocking socket to an agent of this user or root. Starts the agent when none listens, the place is
// automatic and `start` says so; then waits for it until the deadline. ok | denied | out_of_resources | timeout |
// broken, with `why` for people.
Status connect_agent(const AgentPlace& place, bool start, Deadline deadline, AgentSearch* search, Fd* out,
                     std::string* why);

}  // namespace viaduct
