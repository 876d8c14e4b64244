// SPDX-License-Identifier: BSD-2-Clause
// The hardware as MPI_Comm_split_type divides it: which memory, NUMA node, package, cache, core and processor a process
// belongs to, by the processors that it may use.
#pragma once

#include <string_view>

namespace viaduct::mpi::hardware {

// The largest first; the names are the standard's and hwloc's.
inline constexpr const char* kResourceNames[] = {"mpi_shared_memory", "NUMANode", "Package", "L3Cache", "Core", "PU"};
inline constexpr int kResources = 6;

// Its place in the list, or -1.
int resource_named(std::string_view name);

// A number that processes have in common when they use the same one of these resources and no other. MPI_UNDEFINED
// for a process that may use several of them, and where the system does not tell.
int color(int resource);

}  // namespace viaduct::mpi::hardware
