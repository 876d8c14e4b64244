// SPDX-License-Identifier: BSD-2-Clause
// How settings are read from text: numbers with units, choices, and the nearest known name for a misspelt
// one. Used by the configuration alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace viaduct {

struct ConfigKey;

// The number a text stands for in a setting of that type ("int", "size", "duration_ms", "c_int", "c_size", "bool" as
// 0 or 1), or nothing when it is not one.
std::optional<int64_t> parse_number(std::string_view type, std::string_view text);

// Empty when `text` is a value that this row allows, else what would be one.
std::string wrong_value(const ConfigKey& row, std::string_view text);

// The candidate that a misspelling most likely meant; empty when none is near.
std::string nearest(std::string_view misspelt, const std::vector<std::string>& candidates);

}  // namespace viaduct
