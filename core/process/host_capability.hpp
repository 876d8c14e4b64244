// SPDX-License-Identifier: BSD-2-Clause
// Capabilities that count for the limits of the whole host: of memory that may be locked, of descriptors, of priority.
#pragma once

namespace viaduct {

// Whether this process has the capability (CAP_IPC_LOCK and its like) in the first user namespace. The kernel asks for
// it there before it lets a process pass a limit. In a user namespace of its own a process may have every capability,
// and passes no limit by it. System calls only, no state; any thread.
bool has_host_capability(int capability);

}  // namespace viaduct
