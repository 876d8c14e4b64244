// SPDX-License-Identifier: BSD-2-Clause
// A seeded fault plan of one connection end: what the modelled network does with each message that end sends
// (spec/reliability 6.1-6.2). Used under the send lock, by tests and tools only; a connection without a plan
// never comes here.
#pragma once

#include <cstdint>

#include "core/fault/fault_plan.hpp"

namespace viaduct::paramnet {

// What happened so far: every event of the modelled network is counted.
struct FaultCounters {
    uint64_t dropped = 0;
    uint64_t corrupted = 0;
    uint64_t duplicated = 0;  // copies that the receiving NIC recognised and threw away
    uint64_t retransmitted = 0;
    uint64_t delayed = 0;
    uint64_t given_up = 0;  // retries exhausted
};

inline constexpr uint32_t kMaxRetries = 8;  // of a reliable transfer before its connection is given up

enum class FaultOutcome : uint8_t {
    arrives,
    lost,     // unreliable: silently dropped
    damaged,  // unreliable: the receiving NIC saw a bad check sum and dropped it
    failed,   // reliable: no retry came through
};

class FaultModel {
public:
    explicit FaultModel(const FaultPlan& plan) : plan_(plan), dice_(plan.seed) {}

    const FaultPlan& plan() const { return plan_; }
    const FaultCounters& counters() const { return counters_; }
    // What the network does with one message.
    FaultOutcome decide(bool reliable);
    void count_delay() { ++counters_.delayed; }

private:
    bool link_is_down() const;

    FaultPlan plan_;
    FaultCounters counters_;
    FaultDice dice_;
};

}  // namespace viaduct::paramnet
