// SPDX-License-Identifier: BSD-2-Clause
// Whose an abstract socket name is. Such names have no permissions: every user of the network namespace can take
// any of them. Slow path, any thread; no state.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace viaduct {

// Neither root nor this process' user: not to be trusted with anything.
bool is_stranger(uid_t user);

// The user who has bound "@name" with a socket of that type (SOCK_SEQPACKET, SOCK_DGRAM), by the kernel's word
// (sock_diag). Nothing: nobody has, or the kernel does not tell.
std::optional<uid_t> holder_of(const std::string& name, int type);

// "user 4242 (process 17, nc)": for people. No process: 0.
std::string name_of_stranger(uid_t user, pid_t process);

// Who stands at "@name" where an agent or an engine of ours would be, for people; empty: no stranger does.
std::string stranger_at(const std::string& name);

}  // namespace viaduct
