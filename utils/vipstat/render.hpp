// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <string>
#include <vector>

#include "utils/vipstat/watch.hpp"

namespace viaduct::vipstat {

struct View {
    bool counters = false;  // every counter, zeros included
    size_t rows = 0;        // of VIs for each process at most; 0: all
    size_t columns = 0;     // of the terminal; 0: lines of any length
};

std::string text(const std::vector<ProcessView>&, const View&);
std::string json(const std::vector<ProcessView>&);
// Of those that run.
std::string prometheus(std::vector<ProcessView>);
// A page for a browser, which asks for /json again and again.
std::string page();

}  // namespace viaduct::vipstat
