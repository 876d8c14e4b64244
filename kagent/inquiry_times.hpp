// SPDX-License-Identifier: BSD-2-Clause
// The times at which the agent asks providers again for their NICs: soon after reports of changed interfaces have
// ended, a second after a NIC has vanished, and in growing pauses while an inquiry fails for want of memory,
// descriptors or threads. Time is an argument. Used by Server on the agent's one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>

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
    // A provider has answered. `may_succeed_later`: it lacked memory, descriptors or threads.
    void answered(size_t provider, bool may_succeed_later, int64_t now) {
        if (!may_succeed_later) {
            failing_.erase(provider);
            if (failing_.empty()) pause_ = kFirstPause;
            return;
        }
        failing_.insert(provider);
        if (retry_ != kNever) return;  // of several providers at once
        retry_ = now + pause_;
        pause_ = std::min(2 * pause_, kLongestPause);
    }
    // The providers have been asked; false: some of them have not, for want of threads.
    void asked(bool all, int64_t now) { answered(kThreads, !all, now); }
    // A NIC is missing in an answer. A call of its provider may have failed: another inquiry shows whether it has
    // vanished.
    void vanished(int64_t now) { confirm_ = std::min(confirm_, now + kFirstPause); }

    int64_t next() const { return std::min({settled_, retry_, confirm_}); }
    // True, once, when it is time to ask the providers.
    bool take(int64_t now) {
        if (now < next()) return false;
        settled_ = retry_ = confirm_ = kNever;
        return true;
    }

private:
    static constexpr size_t kThreads = SIZE_MAX;  // no provider

    int64_t settled_ = kNever, unrest_ends_ = 0;
    int64_t retry_ = kNever, confirm_ = kNever;
    int64_t pause_ = kFirstPause;
    std::set<size_t> failing_;  // providers whose last answer was a failure
};

}  // namespace viaduct::kagent
