// SPDX-License-Identifier: BSD-2-Clause
// The process at the other end of a Unix socket.
#pragma once

#include <sys/types.h>

#include "core/shm/fd.hpp"

namespace viaduct {

// A descriptor of it, by the kernel's word (SO_PEERPIDFD), else by its number (SO_PEERCRED; 0: our PID
// namespace does not see it), checked to be still that process. Invalid: `ended`, or the kernel gives none: it
// is too old, forbids it, or does not show us the process.
Fd peer_process(int socket, pid_t number, bool* ended);

}  // namespace viaduct
