// SPDX-License-Identifier: BSD-2-Clause
// The three clients behind rte.hpp; which one a process takes is spec/mpi 1. Used by join() and by tests.
#pragma once

#include "mpi-adi/rte/rte.hpp"

namespace viaduct::rte {

// Rank 0 of 1.
std::unique_ptr<Runtime> make_alone();

// Speaks PMI-1 lines on `fd`, which it owns from now on.
std::unique_ptr<Runtime> join_pmi1(int fd, int rank, int size, std::string* error);

// Speaks to the PMIx server named by the environment, through libpmix, which is loaded only here.
std::unique_ptr<Runtime> join_pmix(std::string* error);

}  // namespace viaduct::rte
