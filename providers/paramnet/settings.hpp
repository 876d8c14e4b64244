// SPDX-License-Identifier: BSD-2-Clause
// The provider's settings as values: section [paramnet] of the configuration (man/viaduct-paramnet.7).
#pragma once

#include <cstdint>

#include "viaduct/provider.hpp"

namespace viaduct::paramnet {

inline constexpr uint32_t kMaxNics = 64;

// What the link does with time. The calibrated model of the PARAMNet-II link is the second policy this names;
// a policy that does not exist is refused, never ignored.
enum class Timing : uint8_t { none };

struct NicSettings {
    uint32_t nics = 1;       // how many NICs this host has
    bool cross_copy = true;  // reach the memory of other processes directly where the system permits it
    int64_t pull_from =
        -1;  // sends from this length up are pulled out of the sender's memory; 0 never, -1 measured
    // Messages from this length up are written to the ring past the caches. The lines of the ring lie in the
    // caches of the processor that has read them, and stores fetch them from there one by one
    // (docs/data-path.md, Costs).
    uint32_t stream_from = 8192;
    Timing timing = Timing::none;
};

// False, with a reason and a cure for people, when a value makes no sense.
bool read_settings(const Settings&, NicSettings* out, Rejection* why);

}  // namespace viaduct::paramnet
