// SPDX-License-Identifier: BSD-2-Clause
// A chart as inline SVG: size of message to the right in powers of two, a value upwards, logarithmic or not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace viaduct::vipperf {

struct Curve {
    std::string name;
    std::string colour;                               // a class of the page's style
    std::vector<std::pair<uint64_t, double>> points;  // ascending by size
};

struct ChartOptions {
    std::string title;
    std::string unit;
    bool logarithmic = false;
    std::string (*label)(double) = nullptr;  // of a value
};

std::string svg_of(const ChartOptions&, const std::vector<Curve>&);

}  // namespace viaduct::vipperf
