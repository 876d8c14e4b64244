// SPDX-License-Identifier: BSD-2-Clause
// What was recorded, read from the files of a folder. Files may be damaged or made up: every number is checked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/trace/events.hpp"

namespace viaduct::viptrace {

using namespace trace;

struct Seen {
    int64_t ns = 0;  // since the first event of the whole record
    What what = What::none;
    Phase phase = Phase::instant;
    uint8_t result = 0;
    uint32_t thread = 0;
    uint64_t object = 0, value = 0;

    uint32_t low() const { return static_cast<uint32_t>(value); }
    uint32_t high() const { return static_cast<uint32_t>(value >> 32); }
};

struct Process {
    uint32_t pid = 0;
    int rank = -1;  // of an MPI job
    std::string program, host;
    int64_t zero_ns = 0;       // CLOCK_MONOTONIC of its host at the beginning of the record
    uint64_t lost = 0;         // events that newer ones have overwritten
    std::vector<Seen> events;  // in the order of time
    std::string name() const;  // "rank 3", or "4711 vipping"
};

// Throws ToolError when there is nothing to read. What cannot be read is told in `problems`.
std::vector<Process> read_folder(const std::string& folder, std::vector<std::string>* problems);

const char* name_of(What);

inline constexpr int64_t kLatest = int64_t{1} << 62;  // ns: a later time has no meaning, and sums with it would not fit

}  // namespace viaduct::viptrace
