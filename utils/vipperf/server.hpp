// SPDX-License-Identifier: BSD-2-Clause
// vipperf as server: does what a client asks, one client after another.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "utils/measure/pair.hpp"

namespace viaduct::vipperf {

struct ServerOptions {
    std::vector<std::string> devices;  // a client comes by any of them
    std::string discriminator;
    bool once = false;  // ends with its first client
    // The two ends are one program on two processors: limits can be measured too.
    measure::Pair* pair = nullptr;
};

void serve(const ServerOptions&, const std::function<void(const std::string&)>& on_line);

}  // namespace viaduct::vipperf
