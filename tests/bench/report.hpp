// SPDX-License-Identifier: BSD-2-Clause
// Rows of measurements, taken in turns for several rounds with the distance of the two processors probed
// before and after each, and the table of medians beside their limits.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "utils/measure/machine.hpp"
#include "utils/measure/pair.hpp"

namespace viaduct::bench {

using namespace measure;

struct Row {
    std::string name;
    std::string unit;  // "ns": smaller is better; all others: larger
    std::function<double(Pair&)> measure;
    std::string limit;    // name of the row it is compared with; empty: it is a limit itself
    bool sleeps = false;  // the processors are meant to be idle for part of the time
    std::vector<double> samples[kDistances] = {};
    int disturbed = 0;  // of them
};

// Takes every row once a round; both sides call it. A sample during which the distance changed, or another thread
// else had one of the processors, is taken again; when that does not help it counts, and the table says so.
void take_samples(Pair&, std::vector<Row>&, int rounds);

// The leader's: machine, date, settings, then the table.
void print_table(const Pair&, const std::vector<Row>&, const std::string& title);

struct Options {
    int rounds = 5;
    int cpus[2] = {-1, -1};
};
// False: the arguments are wrong or there is one processor only, and `exit_code` says how to leave.
bool read_options(int argc, char** argv, Options*, int* exit_code);

}  // namespace viaduct::bench
