// SPDX-License-Identifier: BSD-2-Clause
// Files that clients have handed to a server of ours. Closing one can take as long as its owner likes: a file
// of a FUSE file system asks its server, a socket that lingers waits for its network. Our servers have one
// thread, so they close by themselves only what cannot keep them.
#pragma once

#include <vector>

#include "core/shm/segment.hpp"

namespace viaduct {

// Memory files and eventfds, which is all that providers hand out: no call on one of them waits for anybody.
bool closes_at_once(const Fd&);

// Closes them on a thread that is made for it and may hang. Where no thread can be made, here.
void close_elsewhere(std::vector<Fd> files);

}  // namespace viaduct
