// SPDX-License-Identifier: BSD-2-Clause
#include "core/tuner/transfer_tuner.hpp"

#include <utility>

namespace viaduct {

namespace {

// Lengths of one class differ by less than two: their times are compared as of 64 KiB.
uint64_t per_64k(uint64_t ns, size_t bytes) {
    return std::max<uint64_t>(std::min<uint64_t>(ns, UINT32_MAX) * 65536 / std::max<size_t>(bytes, 1), 1);
}

}  // namespace

TunerClass::TunerClass() {
    for (uint32_t method = 0; method < kMostMethods; ++method) order_[method] = static_cast<uint8_t>(method);
}

uint8_t TunerClass::kept(uint32_t possible) const {
    for (const uint8_t method : order_)
        if ((possible >> method & 1) != 0) return method;
    return 0;
}

bool TunerClass::another_in_time(uint32_t method) const {
    for (uint32_t other = 0; other < kMostMethods; ++other)
        if (other != method && trials_[other].told != 0) return true;
    return false;
}

bool TunerClass::is_wanted(const TunerRules& rules, uint32_t method) const {
    const Trial& t = trials_[method];
    const TunedMethod& of = rules.methods[method];
    return !t.left_out && t.late < kMostLate && t.run < of.untold + of.told &&
           (!of.after_others || another_in_time(method));
}

TunerClass::Choice TunerClass::choose(const TunerRules& rules, uint32_t possible, bool may_try) {
    if (!trying_) {
        if (++since_ >= pause_) begin();
    } else if (may_try) {
        for (uint32_t method = 0; method < rules.methods.size(); ++method) {
            if ((possible >> method & 1) == 0 || !is_wanted(rules, method)) continue;
            const bool counts = ++trials_[method].run > rules.methods[method].untold;
            took_part_ |= 1u << method;
            since_ = 0;
            return {static_cast<uint8_t>(method), true, counts, round_};
        }
        // The last of a round may wait behind many that were chosen after it.
        if (is_over(rules) || ++since_ >= rules.longest_pause) decide(rules);
    }
    return {kept(possible), false, false, 0};
}

bool TunerClass::is_over(const TunerRules& rules) const {
    for (uint32_t method = 0; method < rules.methods.size(); ++method) {
        if ((took_part_ >> method & 1) == 0) continue;
        const Trial& t = trials_[method];
        if (t.late < kMostLate && t.told + t.late < rules.methods[method].told) return false;
    }
    return took_part_ != 0;
}

void TunerClass::tell(const TunerRules& rules, const Choice& choice, size_t bytes, uint64_t ns) {
    if (!choice.counts || !trying_ || choice.round != round_) return;  // of an earlier round
    Trial& t = trials_[choice.method];
    const uint64_t time = per_64k(ns, bytes);
    if (ns != kNeverTold) {
        spent_ += time;
        ++spent_by_;
    }
    if (ns == kNeverTold || ns > rules.late_ns + uint64_t{bytes}) {
        ++t.late;
    } else {
        ++t.told;
        if (rules.statistic == Statistic::mean)
            t.time += time;
        else if (t.time == 0 || time < t.time)
            t.time = time;
    }
}

uint64_t TunerClass::time_of(const TunerRules& rules, uint32_t method) const {
    const Trial& t = trials_[method];
    const uint64_t time = rules.statistic == Statistic::mean && t.told != 0 ? t.time / t.told : t.time;
    return time * (100 + rules.methods[method].handicap);
}

void TunerClass::sort(const TunerRules& rules) {
    // What was late goes behind what was in time. What did not take part stays where it is.
    std::stable_partition(order_.begin(), order_.end(),
                          [&](uint8_t method) { return (took_part_ >> method & 1) == 0 || trials_[method].told != 0; });
    std::array<uint8_t*, kMostMethods> timed{};
    size_t n = 0;
    for (uint8_t& method : order_)
        if (trials_[method].told != 0) timed[n++] = &method;
    for (size_t pass = 1; pass < n; ++pass) {
        for (size_t i = 0; i + 1 < n; ++i) {
            uint8_t &before = *timed[i], &behind = *timed[i + 1];
            if (time_of(rules, behind) * 100 < time_of(rules, before) * (100 - rules.gain)) std::swap(before, behind);
        }
    }
}

void TunerClass::decide(const TunerRules& rules) {
    const uint8_t before = order_[0];
    uint64_t pause = rules.longest_pause;
    if (another_in_time(kMostMethods)) {
        sort(rules);
        for (uint32_t method = 0; method < rules.methods.size(); ++method) {
            const Trial& t = trials_[method];
            if (t.told != 0) left_out_of_[method] = 0;
            if (t.told == 0 && t.late != 0)
                left_out_of_[method] = static_cast<uint8_t>(std::min(2u * left_out_of_[method] + 1, kMostLeftOut));
        }
        const bool confirmed = decided_ && order_[0] == before;
        pause = confirmed ? std::min(8 * uint64_t{pause_}, pause) : rules.first_pause;
        const uint64_t kept = time_of(rules, order_[0]) / (100 + rules.methods[order_[0]].handicap);
        if (kept != 0 && spent_ > kept * spent_by_) {
            const uint64_t cost = (spent_ - kept * spent_by_) * 100 / kMostCost / kept;
            pause = std::max(pause, std::min(cost, uint64_t{kLongestPauses} * rules.longest_pause));
        }
        decided_ = true;
    }
    pause_ = static_cast<uint32_t>(pause);
    since_ = 0;
    trying_ = false;
}

void TunerClass::begin() {
    trying_ = true;
    ++round_;
    took_part_ = since_ = spent_by_ = 0;
    spent_ = 0;
    for (uint32_t method = 0; method < kMostMethods; ++method) {
        trials_[method] = Trial();
        const bool left_out = left_out_so_far_[method] < left_out_of_[method];
        left_out_so_far_[method] = left_out ? static_cast<uint8_t>(left_out_so_far_[method] + 1) : uint8_t{0};
        trials_[method].left_out = left_out;
    }
}

}  // namespace viaduct
