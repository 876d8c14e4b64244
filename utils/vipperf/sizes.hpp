// SPDX-License-Identifier: BSD-2-Clause
// Message sizes as people write them: "8", "4K", "1:4M" (powers of two), "8,1K,64K".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace viaduct::vipperf {

// Ascending, each once; empty when the text cannot be understood or a size is 0 or above kMostBytes.
std::vector<uint64_t> sizes_of(const std::string& text);
std::string size_text(uint64_t bytes);  // "4 KiB"

}  // namespace viaduct::vipperf
