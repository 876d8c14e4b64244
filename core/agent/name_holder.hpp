// SPDX-License-Identifier: BSD-2-Clause
// Which user has bound an abstract socket name. Such names have no permissions: every user of the network namespace can
// bind any of them, so a client checks the owner before it uses an agent (docs/decisions.md, "The automatic agent
// listens on an abstract socket"; meeting_point.hpp). Slow path, any thread; no state, no lock. Waits half a
// second at most for the kernel's whole answer, however many sockets other users make it list.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace viaduct {

// Whether `user` is neither root nor the user of this process. Servers of such a user are not used.
bool is_untrusted_user(uid_t user);

// The user of the socket of that type (SOCK_SEQPACKET, SOCK_DGRAM) that is bound to "@name", as the kernel reports it
// (sock_diag). Where only connected SOCK_SEQPACKET sockets have the name, an untrusted user of one of them: no server
// of ours is bound and connected. Nothing: there is no such socket, or its user is unknown (a kernel before 5.3, no
// netlink, no answer in time). A caller may not take unknown for its own.
std::optional<uid_t> holder_of(const std::string& name, int type);

// "user 4242 (process 17, nc)", for messages. `process` 0: unknown, and left out.
std::string name_of_other_user(uid_t user, pid_t process);

// The same text for the untrusted user that has the SOCK_SEQPACKET name "@name". Connects to the server there, which
// gets nothing; where none takes the connection, asks sock_diag. Empty: no such user has it, or it is unknown.
std::string other_user_at(const std::string& name);

}  // namespace viaduct
