// SPDX-License-Identifier: BSD-2-Clause
// What every figure needs beside it: the machine, the date, and how far its two processors were from each
// other at that moment. (The processors of a machine that is virtual itself are moved about.)
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace viaduct::measure {

enum class Distance { near, far, remote };
inline constexpr size_t kDistances = 3;

// From half a round trip of one cache line (Pair::distance).
Distance distance_of(double ns);
const char* name_of(Distance);

// Processor time of this thread so far: a share of less than all of it tells that another thread ran.
double thread_seconds();
inline constexpr double kOwnShare = 0.97;  // of a processor, for a sample to count

double median(std::vector<double> values);

std::string machine_text();  // "AMD EPYC, Linux 6.18"
std::string date_text();     // "2026-11-21 11:00 UTC"

void pin_to(int cpu);
// Whether this process may be pinned there.
bool may_run_on(int cpu);

}  // namespace viaduct::measure
