// SPDX-License-Identifier: BSD-2-Clause
#include "providers/wire/proof_demand.hpp"

#include <algorithm>

namespace viaduct::wire {

namespace {

constexpr Time kMostTimes = 16;  // the longest demand, of the first one's length

}  // namespace

// An accept that comes to nothing soon after a demand shows that forged requests go on: the next demand is twice as
// long.
bool ProofDemand::note_unconfirmed(Time now) {
    if (is_demanded(now)) return false;
    const bool goes_on = now - until_ < length_;
    const bool is_second = now - last_at_ <= first_;
    last_at_ = now;
    if (!goes_on && !is_second) return false;
    length_ = goes_on ? std::min(2 * length_, kMostTimes * first_) : first_;
    until_ = now + length_;
    last_at_ = INT64_MIN / 2;
    return true;
}

}  // namespace viaduct::wire
