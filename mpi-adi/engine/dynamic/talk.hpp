// SPDX-License-Identifier: BSD-2-Clause
// Two processes of different jobs that have a stream socket between them and exchange a text each, while their jobs'
// messages go on.
#pragma once

#include <cstddef>
#include <string>

namespace viaduct::mpi {

// Both sides call it. False: the other side has ended, or sends what is longer than any text of ours.
bool swap_texts(int socket, const std::string& mine, std::string* theirs);

// Waits, with progress, until the condition holds that no module tells of.
template <class Condition>
void wait_for_socket(Condition condition);

}  // namespace viaduct::mpi

#include "mpi-adi/engine/p2p.hpp"

template <class Condition>
void viaduct::mpi::wait_for_socket(Condition condition) {
    const Unannounced unannounced;
    progress_until(condition);
}
