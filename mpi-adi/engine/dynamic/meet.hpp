// SPDX-License-Identifier: BSD-2-Clause
// Two groups that may be of different jobs become the two sides of an inter-communicator. Their roots exchange a text
// each over whatever they have between them: what every member says of itself, the context its side receives with,
// and half of a secret. Each side then gives the other's members process numbers, connects, and tells the other side
// how that went; so when the call returns on one side the other one has its members.
#pragma once

#include <functional>

#include "mpi-adi/engine/communicator.hpp"
#include "mpi-adi/engine/dynamic/processes.hpp"

namespace viaduct::mpi {

// Gives the other root a text and takes its text; an MPI error class. Both roots call it.
using SwapTexts = std::function<int(const std::string& mine, std::string* theirs)>;

struct RootLink {
    SwapTexts swap;
    JobSecret secret = {};  // that the two roots share already; the halves come to it
};

// Collective over `local`. `reach` is called at the root alone and makes the link; it is called again where the first
// exchange fails and `again` is set, which is for an accepting process: that caller has died.
int meet(Communicator& local, int root, const std::function<int(RootLink*)>& reach, bool again, Communicator** made);

}  // namespace viaduct::mpi
