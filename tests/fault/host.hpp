// SPDX-License-Identifier: BSD-2-Clause
// The host as the fault tests see it: the agent's process, and a census of what this process, the agent and
// the host still hold.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <set>
#include <string>

#include "../conformance/child.hpp"

namespace viaduct::fault {

/// Name of the agent that this process and its roles use.
std::string agent_name();
/// The agent of that name: found by its command line. 0 when none runs.
pid_t agent_pid();
/// Kills it (-9) and waits until it has ended. False when there was none.
bool kill_agent();

/// Roles started while this lives use an agent of their own. It keeps nothing of processes that have ended, and so
/// leaves soon after the last one.
class OtherAgent {
public:
    explicit OtherAgent(const std::string& suffix);
    ~OtherAgent();
    OtherAgent(const OtherAgent&) = delete;
    OtherAgent& operator=(const OtherAgent&) = delete;

private:
    std::string before_;
};

/// The agent stands still (SIGSTOP) while this lives. A test that is killed over it leaves no stopped agent
/// behind.
class StoppedAgent {
public:
    StoppedAgent();
    ~StoppedAgent();
    StoppedAgent(const StoppedAgent&) = delete;
    StoppedAgent& operator=(const StoppedAgent&) = delete;
    bool stopped() const { return pid_ != 0; }

private:
    pid_t pid_;
    std::unique_ptr<conformance::Child> guardian_;
};

/// What is held at this moment. Threads that tidy up may need a moment: compare with eventually().
struct Census {
    std::size_t mappings = 0;           // memfd mappings of this process
    std::size_t descriptors = 0;        // open in this process
    std::size_t agent_descriptors = 0;  // open in the agent; 0: none runs
    std::size_t processes = 0;          // others that use the same agent, itself included
    std::set<std::string>
        files;  // names in /dev/shm, /tmp and the user's run-time folder that speak of Viaduct

    static Census take();
    /// One that has been the same for some looks: what is made once and what is tidied up late are over.
    static Census settled();
    /// Nothing more than before.
    bool within(const Census& before) const;
    std::string text() const;
    bool operator==(const Census&) const = default;
};

}  // namespace viaduct::fault
