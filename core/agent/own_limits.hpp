// SPDX-License-Identifier: BSD-2-Clause
// What a process has inherited that a server for many must not have: limits, priority, memory policy. A server that a
// program has started in passing undoes it; what it cannot undo it tells its clients, and one whose own limits are
// better has another server started instead. Main thread of the server; any thread of a client.
#pragma once

#include <cstdint>
#include <string>

namespace viaduct {

enum Flaw : uint32_t {
    kFewFiles = 1u << 0,       // descriptors
    kProcessorTime = 1u << 1,  // it will be ended
    kAddressSpace = 1u << 2,
    kData = 1u << 3,
    kFileSize = 1u << 4,  // memory files are files
    kPriority = 1u << 5,  // nice, or run when the machine is idle only
    kFilteredCalls = 1u << 6,
};

// Limits as high as the system lets this process have them.
void raise_own_limits();
// Priority, policies of scheduling and memory, the order of ends when memory is short: as a program has them that
// nobody has said anything to.
void shed_inherited();

// What is wrong with the hard limits and the priority of this process; of a server started by it, too.
uint32_t own_flaws();
std::string names_of_flaws(uint32_t flaws);
// Whether a server started by this process would lack some of these flaws and have no others.
bool could_do_better(uint32_t flaws);

}  // namespace viaduct
