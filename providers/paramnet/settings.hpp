// SPDX-License-Identifier: BSD-2-Clause
// The provider's settings as values: section [paramnet] of the configuration (man/viaduct-paramnet.7).
#pragma once

#include <cstdint>

#include "core/fault/fault_plan.hpp"
#include "providers/paramnet/link_model.hpp"
#include "providers/paramnet/method_tuner.hpp"
#include "viaduct/provider.hpp"

namespace viaduct::paramnet {

inline constexpr uint32_t kMaxNics = 64;
inline constexpr uint32_t kMaxSwitches = 16;  // that a message of the modelled network passes

struct NicSettings {
    uint32_t nics = 1;       // how many NICs this host has
    bool cross_copy = true;  // reach the memory of other processes directly where the system permits it
    // Sends from this length up are pulled out of the sender's memory; 0: never, -1: learnt (method_tuner.hpp).
    int64_t pull_from = -1;
    // Messages from this length up are written to the ring past the caches. The lines of the ring lie in the
    // caches of the processor that has read them, and stores fetch them from there one by one
    // (docs/data-path.md, Costs); on other machines, or other days, plain stores are the better ones.
    uint32_t stream_from = kLearnt;
    bool trials = true;            // connections measure their messages (method_tuner.hpp, prefetch_tuner.hpp)
    uint32_t block_bytes = 65536;  // longest piece in which a message goes through the ring
    // Of the NIC opened: what its link does with time, and what goes wrong on it, for tests.
    LinkModel link;
    FaultPlan faults;
};

// The settings of NIC number `index`. False, with a reason and a cure for people, when a value makes no
// sense.
bool read_settings(const Settings&, uint32_t index, NicSettings* out, Rejection* why);

}  // namespace viaduct::paramnet
