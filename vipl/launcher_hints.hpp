// SPDX-License-Identifier: BSD-2-Clause
// Rank and size of the parallel job that this process belongs to, as hints for a provider (Hints in
// viaduct/provider.hpp).
#pragma once

#include "viaduct/provider.hpp"

namespace viaduct::vipl {

// Reads the first pair of environment variables that is set: PMI_RANK and PMI_SIZE (Hydra, srun), OMPI_COMM_WORLD_RANK
// and OMPI_COMM_WORLD_SIZE (Open MPI), SLURM_PROCID and SLURM_NTASKS (Slurm alone). The size is the number of peers to
// expect. Zeros when no pair is set, or its numbers are no rank and size. Any thread.
Hints launcher_hints();

}  // namespace viaduct::vipl
