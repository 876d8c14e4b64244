// SPDX-License-Identifier: BSD-2-Clause
// Fault injection for tests: what a provider does wrong with messages or frames, and the seeded random numbers that
// decide it. A plan is the text of VipxSetFaultPlan (viaduct/ext.h, **viaduct**(7)) or of a `faults` setting. Without a
// plan none of this code runs. No lock: each FaultDice belongs to one user (providers/packet/faulty_wire.hpp under the
// engine's lock, providers/paramnet/faults.hpp under the send lock).
#pragma once

#include <cstdint>

namespace viaduct {

struct FaultPlan {
    uint64_t seed = 1;
    double drop = 0;  // this one and the next three: probabilities from 0 to 1
    double corrupt = 0;
    double duplicate = 0;
    double reorder = 0;  // a frame is held back, so that later ones overtake it
    uint32_t delay_us = 0;
    bool link_down = false;
    uint32_t flap_ms = 0;  // the link is up and down in turn, this long each; 0: it does not change

    bool active() const {
        return drop > 0 || corrupt > 0 || duplicate > 0 || reorder > 0 || delay_us != 0 || link_down ||
               flap_ms != 0;
    }
    // `now_ns` is the monotonic clock, which all processes of a host share: so all ends with one plan are down at the
    // same time.
    bool is_link_down(int64_t now_ns) const {
        return link_down || (flap_ms != 0 && now_ns / 1'000'000 / flap_ms % 2 != 0);
    }
};

// "seed=1,drop=0.1,corrupt=0,duplicate=0,reorder=0,delay_us=0,linkdown=0,flap_ms=0", any subset in any order;
// null is no fault. False when the text is not a plan.
bool parse_fault_plan(const char* text, FaultPlan* out);

// Pseudo-random numbers (xorshift64*): the same sequence for the same seed on every machine.
class FaultDice {
public:
    explicit FaultDice(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 1) {}

    // True with that probability.
    bool chance(double probability) {
        return probability > 0 && static_cast<double>(next() >> 11) * 0x1p-53 < probability;
    }
    // A number from 0 to limit - 1.
    uint32_t below(uint32_t limit) { return static_cast<uint32_t>((next() >> 32) * limit >> 32); }

private:
    uint64_t next() {
        state_ ^= state_ >> 12;
        state_ ^= state_ << 25;
        state_ ^= state_ >> 27;
        return state_ * 0x2545F4914F6CDD1Du;
    }

    uint64_t state_;
};

}  // namespace viaduct
