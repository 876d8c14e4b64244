// SPDX-License-Identifier: BSD-2-Clause
// What a network is to do wrong, on purpose and by seed: the text of VipxSetFaultPlan, and the dice thrown
// for each message or frame. Used by providers; without a plan nothing of this runs.
#pragma once

#include <cstdint>

namespace viaduct {

struct FaultPlan {
    uint64_t seed = 1;
    double drop = 0;
    double corrupt = 0;
    double duplicate = 0;
    double reorder = 0;  // held back, so that later ones overtake
    uint32_t delay_us = 0;
    bool link_down = false;
    uint32_t flap_ms = 0;  // the link goes down and up, this long each, by the monotonic clock; 0: it stays

    bool active() const {
        return drop > 0 || corrupt > 0 || duplicate > 0 || reorder > 0 || delay_us != 0 || link_down ||
               flap_ms != 0;
    }
    // By one clock, so that all ends, and all processes, of one plan flap together.
    bool is_link_down(int64_t now_ns) const {
        return link_down || (flap_ms != 0 && now_ns / 1'000'000 / flap_ms % 2 != 0);
    }
};

// "seed=1,drop=0.1,corrupt=0,duplicate=0,reorder=0,delay_us=0,linkdown=0,flap_ms=0", any subset in any order;
// null is no fault. False when the text is not a plan.
bool parse_fault_plan(const char* text, FaultPlan* out);

// Small, seeded, the same everywhere (xorshift64*).
class FaultDice {
public:
    explicit FaultDice(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 1) {}

    bool chance(double probability) {
        return probability > 0 && static_cast<double>(next() >> 11) * 0x1p-53 < probability;
    }
    // 0 to limit - 1.
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
