// SPDX-License-Identifier: BSD-2-Clause
#include "providers/paramnet/faults.hpp"

#include "core/clock/clock.hpp"

namespace viaduct::paramnet {

// Plans without flaps need no clock.
bool FaultModel::link_is_down() const { return plan_.is_link_down(plan_.flap_ms != 0 ? now_ns() : 0); }

FaultOutcome FaultModel::decide(bool reliable) {
    for (uint32_t attempt = 0;; ++attempt) {
        FaultOutcome outcome = FaultOutcome::arrives;
        if (link_is_down() || dice_.chance(plan_.drop)) {
            ++counters_.dropped;
            outcome = FaultOutcome::lost;
        } else if (dice_.chance(plan_.corrupt)) {
            ++counters_.corrupted;  // the check sum finds it at every level (spec/reliability 6.1)
            outcome = FaultOutcome::damaged;
        }
        if (outcome == FaultOutcome::arrives) {
            if (dice_.chance(plan_.duplicate)) ++counters_.duplicated;  // at most once (spec/reliability 6.1)
            return outcome;
        }
        if (!reliable) return outcome;
        if (attempt == kMaxRetries) {
            ++counters_.given_up;
            return FaultOutcome::failed;
        }
        ++counters_.retransmitted;
    }
}

}  // namespace viaduct::paramnet
