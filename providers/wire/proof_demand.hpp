// SPDX-License-Identifier: BSD-2-Clause
// When a node demands of requesters a proof that they get its answers: while accepts of requesters without one have
// lately come to nothing. Requests with a forged source address do that, and each costs the program an accept. Pure:
// the clock comes from the caller. Used by Node.
#pragma once

#include "providers/wire/host.hpp"

namespace viaduct::wire {

class ProofDemand {
public:
    // Two accepts that come to nothing within `first` begin a demand, which lasts as long.
    explicit ProofDemand(Time first) : first_(first) {}

    // An accept of a requester without a proof has ended unconfirmed. True: a demand begins.
    bool note_unconfirmed(Time now);
    bool is_demanded(Time now) const { return now < until_; }

private:
    const Time first_;
    Time last_at_ = INT64_MIN / 2, until_ = INT64_MIN / 2;
    Time length_ = 0;  // of the last demand
};

}  // namespace viaduct::wire
