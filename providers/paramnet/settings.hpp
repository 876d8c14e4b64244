// SPDX-License-Identifier: BSD-2-Clause
// The provider's settings as values: section [paramnet] of the configuration (man/viaduct-paramnet.7).
#pragma once

#include <cstdint>

#include "core/fault/fault_plan.hpp"
#include "providers/paramnet/ways.hpp"
#include "viaduct/provider.hpp"

namespace viaduct::paramnet {

inline constexpr uint32_t kMaxNics = 64;

// What the link does with time. The calibrated model of the PARAMNet-II link is the second policy this names;
// a policy that does not exist is refused, never ignored.
enum class Timing : uint8_t { none };

struct NicSettings {
    uint32_t nics = 1;       // how many NICs this host has
    bool cross_copy = true;  // reach the memory of other processes directly where the system permits it
    // Sends from this length up are pulled out of the sender's memory; 0: never, -1: learnt (ways.hpp).
    int64_t pull_from = -1;
    // Messages from this length up are written to the ring past the caches. The lines of the ring lie in the
    // caches of the processor that has read them, and stores fetch them from there one by one
    // (docs/data-path.md, Costs); on other machines, or other days, plain stores are the better ones.
    uint32_t stream_from = kLearnt;
    uint32_t block_bytes = 65536;  // longest piece in which a message goes through the ring
    Timing timing = Timing::none;
    // Of the NIC opened: bytes a second that its link carries, 0 as many as the machine can; and what goes
    // wrong on it, for tests.
    uint64_t link_rate = 0;
    FaultPlan faults;
};

// The settings of NIC number `index`. False, with a reason and a cure for people, when a value makes no
// sense.
bool read_settings(const Settings&, uint32_t index, NicSettings* out, Rejection* why);

}  // namespace viaduct::paramnet
