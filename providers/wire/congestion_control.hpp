// SPDX-License-Identifier: BSD-2-Clause
// Congestion control of one direction of a connection: the round-trip estimate with its retransmission
// timeout (Jacobson, Karn) and the congestion window (additive increase, multiplicative decrease). Used by
// Sender.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "providers/wire/host.hpp"

namespace viaduct::wire {

class RoundTrip {
public:
    void begin(const Tuning& t) {
        *this = RoundTrip{};
        timeout_ = t.first_timeout;
        min_ = t.min_timeout;
        max_ = t.max_timeout;
    }

    // Only from frames that were sent once: for others it is not known which copy was answered.
    void sample(Time measured) {
        if (measured < 0) return;
        if (smooth_ == 0) {
            smooth_ = measured;
            deviation_ = measured / 2;
        } else {
            const Time error = measured > smooth_ ? measured - smooth_ : smooth_ - measured;
            deviation_ += (error - deviation_) >> 2;
            smooth_ += (measured - smooth_) >> 3;
        }
        timeout_ = std::clamp(smooth_ + 4 * deviation_, min_, max_);
        backed_off_ = 0;
    }
    // No answer at all: twice as long next time.
    void back_off() { backed_off_ = std::min(backed_off_ + 1, 16u); }
    void progress() { backed_off_ = 0; }

    Time timeout() const { return std::min(timeout_ << std::min(backed_off_, 10u), max_); }
    Time smooth() const { return smooth_; }

private:
    Time smooth_ = 0, deviation_ = 0, timeout_ = 0, min_ = 0, max_ = 0;
    uint32_t backed_off_ = 0;
};

class Congestion {
public:
    void begin(uint32_t most) {
        most_ = most;
        window_ = std::min(most, 16u);
        threshold_ = most;
        gained_ = 0;
        before_timeout_.reset();
    }

    void acknowledged(uint32_t frames) {
        if (window_ < threshold_) {
            window_ = std::min(window_ + frames, most_);
            return;
        }
        gained_ += frames;
        while (gained_ >= window_) {
            gained_ -= window_;
            window_ = std::min(window_ + 1, most_);
        }
    }
    // Once for each window in which something was lost.
    void lost() {
        threshold_ = std::max(window_ / 2, 2u);
        window_ = threshold_;
        gained_ = 0;
    }
    // No acknowledgement before the timeout: begin with a small window.
    void timed_out() {
        if (!before_timeout_) before_timeout_ = {window_, threshold_};
        threshold_ = std::max(window_ / 2, 2u);
        window_ = 2;
        gained_ = 0;
    }

    // Between a timeout and the first acknowledgement after it, which shows whether the timeout was right, or
    // needless: what it was for had arrived, and was only acknowledged late, by an end that waited for a processor.
    bool has_timed_out() const { return before_timeout_.has_value(); }
    void was_right() { before_timeout_.reset(); }
    void was_spurious() {
        window_ = before_timeout_->window;
        threshold_ = before_timeout_->threshold;
        before_timeout_.reset();
    }

    uint32_t window() const { return window_; }

private:
    struct Before {
        uint32_t window, threshold;
    };
    std::optional<Before> before_timeout_;
    uint32_t most_ = 1, window_ = 1, threshold_ = 1, gained_ = 0;
};

}  // namespace viaduct::wire
