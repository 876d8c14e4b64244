// SPDX-License-Identifier: BSD-2-Clause
#include "providers/paramnet/method_tuner.hpp"

#include <algorithm>

#include "providers/paramnet/segment_layout.hpp"

namespace viaduct::paramnet {

namespace {

constexpr uint32_t kLeastStreamed = 8192;  // shorter ones lose more past the caches than they gain
// Below, what a system call costs weighs as much as the copy, and the ring has the message at once.
constexpr uint32_t kLeastPulled = 16384;
constexpr uint32_t kRingBytes = kUnits * kUnitBytes;
constexpr uint32_t kFirstPause = 64, kLongestPause = 4096;

constexpr uint32_t bit_of(Method method) { return 1u << static_cast<uint32_t>(method); }

}  // namespace

MethodTuner::Choice MethodTuner::next(uint32_t bytes, bool can_pull, bool steady, uint32_t* last) {
    const bool learns_pull = limits_.pull_from == kLearnt;
    if (!learns_pull && can_pull && limits_.pull_from != 0 && bytes >= limits_.pull_from) {
        ++fetched_;
        return {Method::pull, 0};
    }
    const bool streams_by_limit = limits_.stream_from != 0 && bytes >= limits_.stream_from;
    if (bytes < kLeastStreamed || (!learns_streaming() && !learns_pull))
        return {!learns_streaming() && streams_by_limit ? Method::streaming : Method::plain, 0};

    const bool pauses = pause_ != 0 && bytes <= kRingBytes;
    if (pause_ != 0) --pause_;
    if (trial_.is_given_up()) tuner_.tell(trial_.bytes(), trial_.choice(), TunerClass::kNeverTold);
    uint32_t possible = bit_of(Method::streaming) | bit_of(Method::plain);
    if (!learns_streaming()) possible = bit_of(streams_by_limit ? Method::streaming : Method::plain);
    if (learns_pull && can_pull && bytes >= kLeastPulled && !pauses) possible |= bit_of(Method::pull);
    const bool may_try = steady && !trial_.open() && (can_pull || !learns_pull) && !pauses;
    const TunerClass::Choice choice = tuner_.choose(bytes, possible, may_try);
    const auto method = static_cast<Method>(choice.method);
    if (method == Method::pull) ++fetched_;
    return {method, choice.counts ? trial_.begin(choice, bytes, last) : 0};
}

bool MethodTuner::stays_plain(uint32_t bytes) {
    if (!learns_streaming()) return false;
    if (bytes < kLeastStreamed) return true;
    return pause_ == 0 && tuner_.stays(bytes, static_cast<uint8_t>(Method::plain));
}

void MethodTuner::not_fetched(uint32_t message) {
    if (blamed_ == message && next_pause_ != 0) return;
    blamed_ = message;
    // A receiver that fetches most of what it is given is only busy now and then.
    const bool seldom = fetched_ > 4 * next_pause_;
    next_pause_ = next_pause_ == 0 || seldom ? kFirstPause : std::min(2 * next_pause_, kLongestPause);
    pause_ = next_pause_;
    fetched_ = 0;
}

int64_t MethodTuner::ack_limit_ns(uint32_t bytes) { return bytes <= kRingBytes ? int64_t{30'000} + bytes : INT64_MAX; }

}  // namespace viaduct::paramnet
