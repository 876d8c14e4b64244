// SPDX-License-Identifier: BSD-2-Clause
// Decisions where the texts of VIPL leave freedom, each in one place (spec/conformance 13). Read once at
// start.
#pragma once

#include <cstdint>

#include "core/config/config.hpp"

namespace viaduct::vipl {

// Decisions that differ between the tolerant reading (what programs of the time need) and the strict one
// (spec/conformance O1, spec/compat M10).
struct Policy {
    // VipDestroyVi refuses a VI with completions that were not fetched (spec/states 3; programs do it:
    // spec/compat Q11).
    bool destroy_needs_empty_queues = false;
    // A descriptor must lie in the very region its handle names (spec/compat M10 lets a slip pass).
    bool descriptor_in_named_region = false;
    // A posted receive must lie in its regions with all of its length, however short the message (programs of the time
    // post longer ones).
    bool receives_in_their_regions = false;

    // CONN_LOST for the end of a peer is reported after this delay, so that processes of a run that end together report
    // no errors (spec/compat Q14).
    int64_t peer_loss_delay_ns = 250'000'000;

    static Policy from(const Config& config) {
        const bool strict = config.get_bool("vipl", "strict");
        Policy policy;
        policy.destroy_needs_empty_queues = strict;
        policy.descriptor_in_named_region = strict;
        policy.receives_in_their_regions = strict;
        policy.peer_loss_delay_ns = config.get_int("vipl", "conn_lost_delay_ms") * 1'000'000;
        return policy;
    }
};

// Connection handles that may wait for Accept or Reject at one time on one NIC handle (spec/calls 4.3).
inline constexpr uint32_t kMaxConnectionHandles = 1024;

}  // namespace viaduct::vipl
