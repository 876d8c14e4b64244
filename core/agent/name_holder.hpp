// SPDX-License-Identifier: BSD-2-Clause
// Which user has bound an abstract socket name. Such names have no permissions: every user of the network namespace can
// bind any of them, so a client checks the owner before it uses an agent (docs/decisions.md, "The automatic agent
// listens on an abstract socket"; meeting_point.hpp). Slow path, any thread; no state, no lock. Waits half a
// second at most for the kernel's answer.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace viaduct {

// Whether `user` is neither root nor the user of this process. Servers of another user are not used.
bool is_other_user(uid_t user);

// The user of the socket of that type (SOCK_SEQPACKET, SOCK_DGRAM) that is bound to "@name", as the kernel reports it
// (sock_diag). Nothing: there is no such socket, or the kernel does not report its user.
std::optional<uid_t> holder_of(const std::string& name, int type);

// "user 4242 (process 17, nc)", for messages. `process` 0: unknown, and left out.
std::string name_of_other_user(uid_t user, pid_t process);

// The same text for the other user that has the SOCK_SEQPACKET name "@name", by connecting to it or else by sock_diag.
// Empty: no other user has it.
std::string other_user_at(const std::string& name);

}  // namespace viaduct
