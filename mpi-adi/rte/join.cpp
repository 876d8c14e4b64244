// SPDX-License-Identifier: BSD-2-Clause
// Which launcher started us. Decided by the environment alone: asking a PMIx server that is not there costs
// time (spec/mpi 1).
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "mpi-adi/rte/clients.hpp"

namespace viaduct::rte {
namespace {

std::optional<int> number_in(const char* variable) {
    const char* text = std::getenv(variable);
    if (text == nullptr) return std::nullopt;
    int value = 0;
    const char* end = text + std::strlen(text);
    const auto [rest, bad] = std::from_chars(text, end, value);
    if (bad != std::errc() || rest != end) return std::nullopt;
    return value;
}

}  // namespace

std::unique_ptr<Runtime> join(std::string* error) {
    if (std::getenv("PMIX_NAMESPACE") != nullptr) return join_pmix(error);
    if (std::getenv("PMI_FD") == nullptr) return make_alone();

    const auto fd = number_in("PMI_FD");
    const auto rank = number_in("PMI_RANK");
    const auto size = number_in("PMI_SIZE");
    if (!fd || !rank || !size) {
        *error = "PMI_FD is set, but PMI_FD, PMI_RANK and PMI_SIZE are not three numbers";
        return nullptr;
    }
    return join_pmi1(*fd, *rank, *size, error);
}

}  // namespace viaduct::rte
