// SPDX-License-Identifier: BSD-2-Clause
// Folders that nobody but one user (and root) may write into: where his processes meet when a stranger has taken
// their abstract name. Slow path, any thread; no state.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/shm/segment.hpp"

namespace viaduct {

// Those of `user` that exist and are safe, best first: $XDG_RUNTIME_DIR/viaduct, /run/user/UID/viaduct,
// /tmp/viaduct-UID; where a stranger has that, /tmp/viaduct-UID-XXXXXX. Root's: /run/viaduct, then those in /tmp.
std::vector<std::string> private_folders(uid_t user);
// The first of this process' user, made when none exists. Empty, and why, when none can be made.
std::string make_private_folder(std::string* why);

// Of the abstract name "@name" in that folder, for the network namespace of this process: names mean something
// within one, files do not.
std::string private_path(const std::string& folder, const std::string& name);
// A lock for that name, free again when the descriptor is closed. Invalid: somebody has it. One file of the folder
// has them all.
Fd private_lock(const std::string& folder, const std::string& name);

}  // namespace viaduct
