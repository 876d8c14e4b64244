// SPDX-License-Identifier: BSD-2-Clause
// Folders that only one user (and root) may write into. Servers and clients of that user meet at a socket there when
// another user has bound the abstract name (docs/decisions.md, "A socket in a private folder serves when another user
// holds the abstract name"; meeting_point.hpp). Slow path, any thread; no state.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/shm/segment.hpp"

namespace viaduct {

// The folders of `user` that exist and are safe, preferred ones first: $XDG_RUNTIME_DIR/viaduct, /run/user/UID/viaduct,
// /tmp/viaduct-UID; and all of /tmp/viaduct-UID-XXXXXX if /tmp/viaduct-UID exists but is not safe. For root:
// /run/viaduct, then those in /tmp.
std::vector<std::string> private_folders(uid_t user);
// The first folder of this process' user that is safe or can be made. Empty, with the reason in `why`, when there is
// none.
std::string make_private_folder(std::string* why);

// The path of the socket that stands for the abstract name "@name". It has the number of this process' network
// namespace: abstract names are separate in each namespace, files are not.
std::string private_path(const std::string& folder, const std::string& name);
// Takes the lock of that name without waiting; closing the descriptor releases it. Invalid: another process has it, or
// the lock file cannot be opened. All locks of a folder are bytes of its file "locks".
Fd private_lock(const std::string& folder, const std::string& name);

}  // namespace viaduct
