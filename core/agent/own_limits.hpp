// SPDX-License-Identifier: BSD-2-Clause
// Limits, priority and memory policy that a server has inherited from the program that started it on demand (vipkad,
// the engine process of acenic, viaduct-udpd). They are that program's, and the server serves others too. The server
// undoes what it can at its start (raise_own_limits, shed_inherited). It reports the rest as flaws when it welcomes or
// refuses a client; a client whose own limits are better asks it to leave and starts a new one (link_connect.cpp, and
// the providers' own searches).
// Main thread of the server; any thread of a client. System calls only, no lock, no state.
#pragma once

#include <cstdint>
#include <string>

namespace viaduct {

enum Flaw : uint32_t {
    kFewFiles = 1u << 0,       // descriptors
    kProcessorTime = 1u << 1,  // RLIMIT_CPU: the kernel will kill it
    kAddressSpace = 1u << 2,
    kData = 1u << 3,
    kFileSize = 1u << 4,       // counts for memory files too
    kPriority = 1u << 5,       // nice above 0, or SCHED_IDLE
    kFilteredCalls = 1u << 6,  // seccomp
};

// Raises every limit as far as the system allows.
void raise_own_limits();
// Sets nice value, scheduling policy, memory policy, timer slack and oom_score_adj to the system's defaults.
void shed_inherited();

// The Flaw bits of this process: what its hard limits, priority and filter are short of. A server that it starts
// inherits them.
uint32_t own_flaws();
// As text for messages.
std::string names_of_flaws(uint32_t flaws);
// The Flaw bits that a server started by this process would have: it raises limits and priority where it may.
uint32_t flaws_of_started_server();
// Whether a server started by this process would have fewer of `flaws` and no flaw besides.
bool could_do_better(uint32_t flaws);
// After the end of a server with those flaws: time in ns in which other programs may start the next server, before this
// process does. 0: a server started by this process would have no flaws, or be better than the ended one.
int64_t time_for_a_better_server(uint32_t ended);

}  // namespace viaduct
