// SPDX-License-Identifier: BSD-2-Clause
// When a rank that waits in a receive looks for the first time. A look in vain takes the line that the message is going
// to come in from its sender, who then has to fetch it back before it can write: an answer that is just being made
// comes later for being looked for. One that is there already comes later for not being looked for. Which of both a
// program's receives mostly are, its own time tells: now and then some in a row look at once and as many a moment later.
#pragma once

#include <algorithm>
#include <cstdint>

namespace viaduct::mpi {

// For one thread.
class FirstLook {
public:
    using Clock = int64_t (*)();  // ns
    explicit FirstLook(Clock clock) : clock_(clock) {}

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

private:
    // The end of a row, and of a trial, or the beginning of one.
    void turn_over() {
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
    bool late_ = false;
    unsigned left_ = kBeforeFirst;  // waits until the turn
    unsigned rows_ = 0;             // begun in this trial
    int64_t began_ = 0;             // the last one
    int64_t best_[2] = {INT64_MAX, INT64_MAX};  // at once, later
};

}  // namespace viaduct::mpi
