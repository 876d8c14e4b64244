// SPDX-License-Identifier: BSD-2-Clause
// What a record says in figures: how long messages take, which process waits for which, the longest waits.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "utils/common/statistics.hpp"
#include "utils/viptrace/match.hpp"

namespace viaduct::viptrace {

inline constexpr size_t kTimeClasses = 24;  // powers of two of nanoseconds, from 128 on
inline constexpr size_t kLongestWaits = 10;

// Messages of a class of sizes.
struct SizeClass {
    uint32_t least = 0, most = 0;  // bytes
    tools::Summary ns;
    std::array<uint32_t, kTimeClasses> histogram{};  // [0]: below 256 ns; [i]: from 2^(7+i) ns on
};

struct Waits {
    size_t process = 0;
    int peer = -1;  // number of a process; -1: not known, as of a completion queue
    size_t count = 0;
    int64_t total_ns = 0, longest_ns = 0;
};

struct Findings {
    std::vector<SizeClass> sizes;  // the smallest first
    std::vector<Waits> waits;      // the longest total first
    std::vector<Call> longest;     // waiting calls, the longest first
    size_t errors = 0;             // calls and completions that failed, asynchronous errors
};

Findings find(const std::vector<Process>&, const Matched&);

// Whose answer a waiting call waits for; -1: not known.
int peer_of(const std::vector<Process>&, const Matched&, const Call&);

// "3.2 µs"
std::string time_text(double ns);
// "64" or "65 to 128"
std::string size_text(const SizeClass&);

// For people, on a terminal.
std::string text(const std::vector<Process>&, const Matched&, const Findings&);
// A page of its own that needs nothing from elsewhere.
std::string page(const std::vector<Process>&, const Matched&, const Findings&);
// The Chrome trace-event format.
std::string chrome_trace(const std::vector<Process>&, const Matched&);

}  // namespace viaduct::viptrace
