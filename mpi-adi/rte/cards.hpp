// SPDX-License-Identifier: BSD-2-Clause
// Binary values through a protocol that carries short words only: hexadecimal, split at the launcher's limit,
// the first piece telling how many there are (spec/mpi 1.3).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace viaduct::rte {

// Pieces of a value, each of at most `limit` characters (at least 32).
std::vector<std::string> split_card(std::string_view value, size_t limit);

// Asks for pieces by number and puts the value together; none when one is missing or not of this form.
std::optional<std::string> join_card(const std::function<std::optional<std::string>(size_t)>& piece);

}  // namespace viaduct::rte
