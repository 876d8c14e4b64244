// SPDX-License-Identifier: BSD-2-Clause
// Folders that only one user (and root) may write into, by owner and mode as lstat reports them. The parent is root's,
// the user's own, or has the sticky bit (/tmp), so no other user can replace them. Servers and clients of that user
// meet at a socket there when another user has bound the abstract name (docs/decisions.md, "A socket in a private
// folder serves when another user holds the abstract name"; meeting_point.hpp). Slow path, any thread; no state.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/shm/fd.hpp"

namespace viaduct {

// The folders of `user` that exist and are safe (mode 0700; root's 0755), preferred ones first: /run/user/UID/viaduct,
// /tmp/viaduct-UID, and all of /tmp/viaduct-UID-XXXXXX. For root: /run/viaduct, /tmp/viaduct-0, and all of
// /tmp/viaduct-0-XXXXXX. The environment of a process does not matter, nor what other users make in /tmp: all processes
// of a user look into the same folders.
std::vector<std::string> private_folders(uid_t user);
// The first folder of this process' user that is safe or can be made. Empty, with the reason in `why`, when there is
// none.
std::string make_private_folder(std::string* why);

// The path of the socket that stands for the abstract name `name`, which must begin with "@". It has the number of this
// process' network namespace: abstract names are separate in each namespace, files are not.
std::string private_path(const std::string& folder, const std::string& name);
// The paths of such sockets in the folder, of all names and network namespaces.
std::vector<std::string> private_sockets(const std::string& folder);
// Takes the lock of that path without waiting (F_OFD_SETLK on one byte of the folder's file "locks", at a hash of the
// path); closing the descriptor releases it. Invalid, with `error`: EAGAIN, another process has it; else the errno of
// the lock file.
Fd private_lock(const std::string& folder, const std::string& path, int* error);

}  // namespace viaduct
