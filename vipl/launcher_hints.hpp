// SPDX-License-Identifier: BSD-2-Clause
// What the launcher of a parallel job has told this process, as hints for a provider.
#pragma once

#include "viaduct/provider.hpp"

namespace viaduct::vipl {

// Rank and size of the job by the environment variables of Hydra and srun (PMI_RANK, PMI_SIZE), Open MPI
// (OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE) or Slurm alone (SLURM_PROCID, SLURM_NTASKS), in this order;
// all of a job are expected as peers. Zeros where no such pair of numbers stands, or one that makes no sense.
// Any thread.
Hints launcher_hints();

}  // namespace viaduct::vipl
