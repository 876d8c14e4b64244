// SPDX-License-Identifier: BSD-2-Clause
// vipperf --tune: by which method of the default NIC messages of ordinary memory are fastest on this machine, measured
// with the NIC itself and kept for every program (core/config/tuning.hpp).
#pragma once

#include <functional>
#include <string>

namespace viaduct::vipperf {

struct TuneOptions {
    std::string device;
    int cpus[2] = {0, 1};
    int rounds = 5;          // every way is measured so often, in turns
    bool if_needed = false;  // nothing to do where a file counts already
};

// Measures, writes the file, tells what it has found. Throws ToolError; nothing is kept then.
void tune(const TuneOptions&, const std::function<void(const std::string&)>& on_line);

}  // namespace viaduct::vipperf
