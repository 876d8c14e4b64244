// SPDX-License-Identifier: BSD-2-Clause
// How an attempt to connect ends, the same for both ends, also when the agent ends in between. Both ends have the
// segment then, or one has it and the other one never gets it (Joined in viaduct/kagent.hpp). The word is changed once:
// the end that changes it first decides, and the other one finds what was decided.
#pragma once

#include "providers/paramnet/segment_layout.hpp"

namespace viaduct::paramnet {

enum class Outcome : uint32_t {
    open,        // zero: not decided
    connected,   // an end knows that the other one has the segment, or will have it
    given_up,    // an end has ended its attempt
    asked_anew,  // an end has lost the agent, and asks the next one for another connection
};

// Decides for `mine`, or returns what the other end has decided. A word that is none of these ends the attempt.
inline Outcome decide(ConnectionSegment& segment, Outcome mine) {
    auto was = static_cast<uint32_t>(Outcome::open);
    if (segment.outcome.compare_exchange_strong(was, static_cast<uint32_t>(mine), std::memory_order_acq_rel,
                                                std::memory_order_acquire))
        return mine;
    return was <= static_cast<uint32_t>(Outcome::asked_anew) ? static_cast<Outcome>(was) : Outcome::given_up;
}

}  // namespace viaduct::paramnet
