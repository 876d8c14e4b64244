// SPDX-License-Identifier: BSD-2-Clause
// Poll delay: when a wait polls for the first time. A poll that finds nothing takes the cache line of the message from
// its sender, which then has to fetch it back before it can write. So an early poll delays an answer that is about to
// be written, and a late poll delays an answer that is already there. Which case is more frequent in a program is
// measured: now and then some waits in a row poll at once, as many others poll a moment later, and their times are
// compared. Bound: where the delay is faster on the whole, a message that is there is seen later by that delay (two
// pauses in libcmpi); elsewhere this happens in 64 of 4,224 waits only.
#pragma once

#include <algorithm>
#include <climits>
#include <cstdint>

namespace viaduct {

// For one thread.
class PollDelay {
public:
    using Clock = int64_t (*)();  // ns
    explicit PollDelay(Clock clock) : clock_(clock) {}

    static constexpr unsigned kInRow = 16;   // waits that are timed together: the clock takes as long as a look
    static constexpr unsigned kEachWay = 4;  // rows of a trial; the quickest counts, which no interrupt has spoilt
    static constexpr unsigned kBeforeFirst = 64;  // waits, while connections find their ways
    static constexpr unsigned kBetweenTrials = 4096;

    // A wait begins; whether its first look is better a moment later.
    bool is_late() {
        if (left_ == 0) [[unlikely]]
            turn_over();
        --left_;
        return late_;
    }

    // Every wait looks at once from now on, and none is timed.
    void switch_off() {
        off_ = true;
        late_ = false;
        left_ = 0;
    }

private:
    // The end of a row, and of a trial, or the beginning of one.
    void turn_over() {
        if (off_) {
            left_ = UINT_MAX;
            return;
        }
        const int64_t now = clock_();
        if (rows_ != 0) best_[late_ ? 1 : 0] = std::min(best_[late_ ? 1 : 0], now - began_);
        if (rows_ == 2 * kEachWay) {
            late_ = best_[1] < best_[0];
            best_[0] = best_[1] = INT64_MAX;
            rows_ = 0;
            left_ = kBetweenTrials;
            return;
        }
        late_ = rows_ % 2 != 0;
        ++rows_;
        left_ = kInRow;
        began_ = now;
    }

    Clock clock_;
    bool off_ = false;
    bool late_ = false;
    unsigned left_ = kBeforeFirst;  // waits until the turn
    unsigned rows_ = 0;             // begun in this trial
    int64_t began_ = 0;             // the last one
    int64_t best_[2] = {INT64_MAX, INT64_MAX};  // at once, later
};

}  // namespace viaduct
