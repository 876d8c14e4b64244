// SPDX-License-Identifier: BSD-2-Clause
// Limits the answers to frames that belong to no connection: so many a second, and a few at once. Any host can send
// such frames, with any sender's address. Used by Node and by acenic's engine process.
#pragma once

#include <algorithm>
#include <cstdint>

namespace viaduct::wire {

class AnswerRate {
public:
    AnswerRate(uint32_t per_second, uint32_t at_once)
        : each_(1'000'000'000 / std::max(per_second, 1u)), most_(each_ * at_once) {}

    // One answer at that time (ns). False: it is one too many.
    bool allows(int64_t now) {
        saved_ = std::min(most_, saved_ + std::max<int64_t>(now - at_, 0));
        at_ = std::max(at_, now);
        if (saved_ < each_) return false;
        saved_ -= each_;
        return true;
    }

private:
    int64_t each_, most_;
    int64_t saved_ = 0;  // time that has not been used for an answer
    int64_t at_ = 0;
};

}  // namespace viaduct::wire
