// SPDX-License-Identifier: BSD-2-Clause
#include "vipl/launcher_hints.hpp"

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

namespace viaduct::vipl {

namespace {

constexpr struct {
    const char* rank;
    const char* size;
} kVariables[] = {{"PMI_RANK", "PMI_SIZE"},
                  {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                  {"SLURM_PROCID", "SLURM_NTASKS"}};

std::optional<uint32_t> number_in(const char* variable) {
    const char* text = std::getenv(variable);
    if (text == nullptr) return std::nullopt;
    const std::string_view digits(text);
    uint32_t number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
    return number;
}

}  // namespace

Hints launcher_hints() {
    Hints hints;
    for (const auto& pair : kVariables) {
        const auto rank = number_in(pair.rank), size = number_in(pair.size);
        if (!rank || !size || *rank >= *size) continue;
        hints.own_rank = *rank;
        hints.session_size = *size;
        hints.expected_peers = *size - 1;
        break;
    }
    return hints;
}

}  // namespace viaduct::vipl
