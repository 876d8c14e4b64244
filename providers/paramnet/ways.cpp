// SPDX-License-Identifier: BSD-2-Clause
#include "providers/paramnet/ways.hpp"

#include <algorithm>
#include <bit>

#include "providers/paramnet/segment_layout.hpp"

namespace viaduct::paramnet {

namespace {

constexpr uint32_t kLeastStreamed = 8192;  // shorter ones lose more past the caches than they gain
// Below, what a system call costs weighs as much as the copy, and the ring has the message at once.
constexpr uint32_t kLeastPulled = 16384;
constexpr uint32_t kRingBytes = kUnits * kUnitBytes;

constexpr uint8_t kRounds = 4;     // trials of each way in each class
constexpr uint32_t kAgain = 4096;  // messages of a class until it is tried anew: processors are moved about
constexpr uint32_t kUnanswered = 4096;  // messages after which no answer is expected any more
constexpr uint32_t kFirstPause = 64, kLongestPause = 4096;

// Whoever takes longer than this was not looking, and its time tells nothing: 10 us, and a byte a nanosecond.
constexpr uint32_t longest_delivery(uint32_t bytes) { return 10'000 + bytes; }

// Times of messages of one class, which differ in length by less than two, are compared as of 64 KiB.
uint32_t per_64k(uint32_t ns, uint32_t bytes) {
    return static_cast<uint32_t>(std::max<uint64_t>(uint64_t{ns} * 65536 / bytes, 1));
}

uint32_t index_of(Way way) { return static_cast<uint32_t>(way); }

// The new way has to be better by so much: a little among the ways through the ring, more for the one that
// makes the sender wait for the receiver.
constexpr uint32_t kGain = 5, kGainOfPull = 10;
bool clearly_less(uint32_t a, uint32_t b, uint32_t per_cent) {
    return uint64_t{a} * 100 < uint64_t{b} * (100 - per_cent);
}

}  // namespace

const Ways::Class Ways::kShort{.streams = false};

Ways::Class& Ways::class_of(uint32_t bytes) {
    return classes_[std::min<uint32_t>(static_cast<uint32_t>(std::bit_width(bytes)) - 14, kClasses - 1)];
}

bool Ways::learns_pulling(uint32_t bytes) const {
    return limits_.pull_from == kLearnt && bytes >= kLeastPulled;
}

Way Ways::settled(const Class& c, uint32_t bytes, bool can_pull) const {
    if (can_pull) {
        const bool waits_in_vain = pause_ != 0 && bytes <= kRingBytes;
        if (limits_.pull_from == kLearnt ? c.pulls && bytes >= kLeastPulled && !waits_in_vain
                                         : limits_.pull_from != 0 && bytes >= limits_.pull_from)
            return Way::pull;
    }
    const bool streams =
        learns_streaming() ? c.streams : limits_.stream_from != 0 && bytes >= limits_.stream_from;
    return streams ? Way::streaming : Way::plain;
}

std::optional<Way> Ways::untried(const Class& c, uint32_t bytes) const {
    const auto wanted = [&](Way way) { return c.rounds[index_of(way)] < kRounds; };
    if (learns_streaming()) {
        for (const Way way : {Way::streaming, Way::plain})
            if (wanted(way)) return way;
    } else if (const Way way = settled(c, bytes, false); wanted(way)) {
        return way;
    }
    if (learns_pulling(bytes) && wanted(Way::pull)) return Way::pull;
    return std::nullopt;
}

Ways::Choice Ways::next(uint32_t bytes, bool can_pull, bool steady) {
    const bool learns_pull = limits_.pull_from == kLearnt;
    if (!learns_pull) {
        const Way way = settled({}, bytes, can_pull);
        if (!learns_streaming() || way == Way::pull) return {way, 0};
    }
    if (bytes < kLeastStreamed) return {settled(kShort, bytes, false), 0};
    const bool waits_in_vain = pause_ != 0 && bytes <= kRingBytes;
    if (pause_ != 0) --pause_;
    Class& c = class_of(bytes);
    if (in_trial() && ++trial_.waited > kUnanswered) trial_.open = false;
    if (c.decided) {
        if (++c.since >= kAgain) {
            c.decided = false;
            c.rounds = {};
            c.best = {};
        }
    } else if (steady && !in_trial() && (can_pull || !learns_pull) && !waits_in_vain) {
        if (const std::optional<Way> way = untried(c, bytes)) {
            ++c.rounds[index_of(*way)];
            trial_ = {true, *way, static_cast<uint32_t>(&c - classes_.data()), bytes, 0, 0};
            if (++number_ == 0) ++number_;
            if (way == Way::pull) ++fetched_;
            return {*way, number_};
        }
        decide(c, bytes);
    }
    const Way way = settled(c, bytes, can_pull);
    if (way == Way::pull) ++fetched_;
    return {way, 0};
}

bool Ways::stays_plain(uint32_t bytes) {
    if (!learns_streaming()) return false;
    if (bytes < kLeastStreamed) return true;
    Class& c = class_of(bytes);
    if (pause_ != 0 || !c.decided || c.streams || c.pulls || c.since + 1 >= kAgain) return false;
    ++c.since;
    return true;
}

void Ways::decide(Class& c, uint32_t bytes) {
    const uint32_t plain = c.best[index_of(Way::plain)], streaming = c.best[index_of(Way::streaming)];
    if (learns_streaming() && plain != 0 && streaming != 0)
        c.streams =
            c.streams ? !clearly_less(plain, streaming, kGain) : clearly_less(streaming, plain, kGain);
    const uint32_t ring = c.best[index_of(settled(c, bytes, false))], pull = c.best[index_of(Way::pull)];
    c.pulls = pull != 0 && ring != 0 && clearly_less(pull, ring, kGainOfPull);
    c.decided = true;
    c.since = 0;
}

void Ways::sent(uint32_t number, int64_t ns) {
    if (in_trial() && number == number_)
        trial_.sent_ns = static_cast<uint32_t>(std::clamp<int64_t>(ns, 0, UINT32_MAX));
}

void Ways::answered(uint32_t number, uint32_t ns) {
    if (!in_trial() || number != number_) return;
    Class& c = classes_[trial_.in];
    if (ns != 0) ns = std::max(ns, trial_.sent_ns);
    if (ns != 0 && ns <= longest_delivery(trial_.bytes)) {
        uint32_t& best = c.best[index_of(trial_.way)];
        const uint32_t time = per_64k(ns, trial_.bytes);
        if (best == 0 || time < best) best = time;
    }
    trial_.open = false;
}

void Ways::not_fetched(uint32_t message) {
    if (blamed_ == message && next_pause_ != 0) return;
    blamed_ = message;
    // A receiver that fetches most of what it is given is only busy now and then.
    const bool seldom = fetched_ > 4 * next_pause_;
    next_pause_ = next_pause_ == 0 || seldom ? kFirstPause : std::min(2 * next_pause_, kLongestPause);
    pause_ = next_pause_;
    fetched_ = 0;
}

int64_t Ways::patience_ns(uint32_t bytes) {
    return bytes <= kRingBytes ? int64_t{30'000} + bytes : INT64_MAX;
}

}  // namespace viaduct::paramnet
