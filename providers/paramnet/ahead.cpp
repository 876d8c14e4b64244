// SPDX-License-Identifier: BSD-2-Clause
#include "providers/paramnet/ahead.hpp"

#include <algorithm>

namespace viaduct::paramnet {

namespace {

constexpr uint8_t kRounds = 4;          // trials of each of the two
constexpr uint32_t kAgain = 4096;       // messages until it is tried anew: processors are moved about
constexpr uint32_t kUnanswered = 4096;  // messages after which no answer is expected any more
constexpr uint32_t kGain = 5;           // per cent by which the other one has to be better
constexpr uint32_t kLongest = 10'000;   // ns; whoever takes longer was not looking
// Both kinds of trials have their answers in one word of the end record (Ways counts from one).
constexpr uint32_t kOurs = 1u << 31;

}  // namespace

uint32_t Ahead::next(uint32_t bytes, bool fetched, bool steady) {
    if (open_) {
        if (++waited_ > kUnanswered) open_ = false;
        return 0;
    }
    if (decided_) {
        if (++since_ < kAgain) return 0;
        decided_ = false;
        rounds_ = {};
        best_ = {};
    }
    if (rounds_[fetches_] == kRounds) {
        fetches_ = !fetches_;
        if (rounds_[fetches_] == kRounds) decide();
        return 0;
    }
    if (!steady || fetched != fetches_) return 0;
    ++rounds_[fetches_];
    open_ = true;
    bytes_ = bytes;
    sent_ns_ = waited_ = 0;
    number_ = (number_ + 1) | kOurs;
    return number_;
}

void Ahead::decide() {
    const uint32_t now = best_[fetches_], other = best_[!fetches_];
    if (now != 0 && other != 0 && uint64_t{other} * 100 < uint64_t{now} * (100 - kGain)) fetches_ = !fetches_;
    decided_ = true;
    since_ = 0;
}

void Ahead::sent(uint32_t number, int64_t ns) {
    if (open_ && number == number_) sent_ns_ = static_cast<uint32_t>(std::clamp<int64_t>(ns, 0, UINT32_MAX));
}

void Ahead::answered(uint32_t number, uint32_t ns) {
    if (!open_ || number != number_) return;
    open_ = false;
    ns = std::max(ns, sent_ns_);
    if (ns == 0 || ns > kLongest) return;
    const auto time = static_cast<uint32_t>(uint64_t{ns} * 65536 / bytes_);
    uint32_t& best = best_[fetches_];
    if (best == 0 || time < best) best = time;
}

}  // namespace viaduct::paramnet
