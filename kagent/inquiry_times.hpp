// SPDX-License-Identifier: BSD-2-Clause
// The times at which the agent asks providers again for their NICs: soon after reports of changed interfaces have
// ended, and in growing pauses after an inquiry has failed for want of memory, descriptors or threads. Time is an
// argument. Used by Server on the agent's one thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "viaduct/provider.hpp"

namespace viaduct::kagent {

class InquiryTimes {
public:
    static constexpr int64_t kQuiet = 50'000'000;           // without a report: the interfaces have settled
    static constexpr int64_t kLongestUnrest = 500'000'000;  // an inquiry waits so long at most for the last report
    static constexpr int64_t kFirstPause = 1'000'000'000;   // after a failure
    static constexpr int64_t kLongestPause = 64'000'000'000;

    // The kernel has reported changes of interfaces or addresses, or has lost reports (ENOBUFS).
    void changed(int64_t now) {
        if (settled_ == kNever) unrest_ends_ = now + kLongestUnrest;
        settled_ = std::min(now + kQuiet, unrest_ends_);
    }
    // An inquiry has failed and may succeed later, or a NIC is missing in its answer.
    void failed(int64_t now) {
        if (retry_ != kNever) return;  // of several providers at once
        retry_ = now + pause_;
        pause_ = std::min(2 * pause_, kLongestPause);
    }
    // All providers have answered.
    void succeeded() { pause_ = kFirstPause; }

    int64_t next() const { return std::min(settled_, retry_); }
    // True, once, when it is time to ask the providers.
    bool take(int64_t now) {
        if (now < next()) return false;
        settled_ = retry_ = kNever;
        return true;
    }

private:
    int64_t settled_ = kNever, unrest_ends_ = 0;
    int64_t retry_ = kNever;
    int64_t pause_ = kFirstPause;
};

}  // namespace viaduct::kagent
