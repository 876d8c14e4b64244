// SPDX-License-Identifier: BSD-2-Clause
// Processes of other jobs. Each process introduces itself with a record; from the records of another job's processes
// this process gives them process numbers behind the ranks of its own job, and connects the protocols that reach
// them. The first communicator that holds a process connects it, before any message: nothing but the end of a
// connection shows the end of a process of another job. When no communicator holds it any more, the connection can be
// closed. Their loss does not end this job (robust/state.hpp).
#pragma once

#include <array>
#include <string>
#include <vector>

#include "mpi-adi/engine/group.hpp"
#include "mpi-adi/transport/adi/cmpi_adi.h"

namespace viaduct::mpi {

// What both jobs, and no other, know of a connection between them.
using JobSecret = std::array<unsigned char, MPIP_SECRET_BYTES>;

// What processes of other jobs need of this one.
std::string own_introduction();

// The process numbers here of processes with these cards. Known ones keep theirs.
int meet_processes(const std::vector<std::string>& introductions, const JobSecret& secret, std::vector<int>* numbers);

// By each communicator that sends to the group.
void hold_processes(const Group& group);
void let_processes_go(const Group& group);

// Closes the connections to members that no communicator holds, which the members do at the same time.
int part_from_processes(const Group& group);

}  // namespace viaduct::mpi
