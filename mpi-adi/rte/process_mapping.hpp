// SPDX-License-Identifier: BSD-2-Clause
// PMI_process_mapping: which rank runs on which node, as Hydra and Slurm write it: "(vector,(first
// node,nodes,processes on each),...)", the blocks repeated until all ranks are placed (spec/mpi 1.3).
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace viaduct::rte {

// Node by rank for `size` ranks; none when the text is not of that form.
std::optional<std::vector<int>> nodes_from_mapping(std::string_view text, int size);

}  // namespace viaduct::rte
