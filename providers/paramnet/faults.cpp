// SPDX-License-Identifier: BSD-2-Clause
#include "providers/paramnet/faults.hpp"

#include "core/clock/clock.hpp"

namespace viaduct::paramnet {

// Plans without flaps need no clock.
bool FaultModel::link_is_down() const { return plan_.is_link_down(plan_.flap_ms != 0 ? now_ns() : 0); }

Fate FaultModel::decide(bool reliable) {
    for (uint32_t attempt = 0;; ++attempt) {
        Fate fate = Fate::arrives;
        if (link_is_down() || dice_.chance(plan_.drop)) {
            ++counters_.dropped;
            fate = Fate::lost;
        } else if (dice_.chance(plan_.corrupt)) {
            ++counters_.corrupted;  // the check sum finds it at every level (spec/reliability 6.1)
            fate = Fate::damaged;
        }
        if (fate == Fate::arrives) {
            if (dice_.chance(plan_.duplicate)) ++counters_.duplicated;  // at most once (spec/reliability 6.1)
            return fate;
        }
        if (!reliable) return fate;
        if (attempt == kMaxRetries) {
            ++counters_.given_up;
            return Fate::failed;
        }
        ++counters_.retransmitted;
    }
}

}  // namespace viaduct::paramnet
