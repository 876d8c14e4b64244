// SPDX-License-Identifier: BSD-2-Clause
// What a service manager and the agent say to each other: sockets handed over, readiness announced. The
// protocol is a few environment variables and one datagram, so no library is needed for it.
#pragma once

#include <string>

#include "core/shm/segment.hpp"

namespace viaduct::kagent {

// The listening socket a service manager passed (LISTEN_PID, LISTEN_FDS: descriptor 3), or none. `error` says
// when one was passed that cannot be used. Clears the variables, so that no child inherits them.
Fd activated_socket(std::string* error);

// One datagram to NOTIFY_SOCKET, "READY=1" for example. Without the variable nothing happens.
void notify_manager(const char* state);

}  // namespace viaduct::kagent
