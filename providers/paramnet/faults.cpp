// SPDX-License-Identifier: BSD-2-Clause
#include "providers/paramnet/faults.hpp"

#include <charconv>
#include <string_view>

namespace viaduct::paramnet {

namespace {

template <class T>
bool read_number(std::string_view text, T* out) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
    return error == std::errc() && end == text.data() + text.size();
}

bool read_probability(std::string_view text, double* out) {
    return read_number(text, out) && *out >= 0 && *out <= 1;
}

bool read_item(std::string_view key, std::string_view value, FaultPlan* plan) {
    if (key == "seed") return read_number(value, &plan->seed);
    if (key == "drop") return read_probability(value, &plan->drop);
    if (key == "corrupt") return read_probability(value, &plan->corrupt);
    if (key == "duplicate") return read_probability(value, &plan->duplicate);
    if (key == "delay_us") return read_number(value, &plan->delay_us) && plan->delay_us <= 10'000'000;
    if (key == "linkdown") {
        uint32_t down = 0;
        if (!read_number(value, &down) || down > 1) return false;
        plan->link_down = down == 1;
        return true;
    }
    return false;
}

}  // namespace

bool parse_fault_plan(const char* text, FaultPlan* out) {
    *out = FaultPlan();
    std::string_view rest = text == nullptr ? std::string_view() : std::string_view(text);
    while (!rest.empty()) {
        const size_t comma = rest.find(',');
        const std::string_view item = rest.substr(0, comma);
        rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
        const size_t equals = item.find('=');
        if (equals == std::string_view::npos ||
            !read_item(item.substr(0, equals), item.substr(equals + 1), out))
            return false;
    }
    return true;
}

bool FaultModel::chance(double probability) {
    if (probability <= 0) return false;
    state_ ^= state_ >> 12;  // xorshift64*: small, seeded, the same everywhere
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    const uint64_t bits = state_ * 0x2545F4914F6CDD1Du;
    return static_cast<double>(bits >> 11) * 0x1p-53 < probability;
}

Fate FaultModel::decide(bool reliable) {
    for (uint32_t attempt = 0;; ++attempt) {
        Fate fate = Fate::arrives;
        if (plan_.link_down || chance(plan_.drop)) {
            ++counters_.dropped;
            fate = Fate::lost;
        } else if (chance(plan_.corrupt)) {
            ++counters_.corrupted;  // the check sum finds it at every level (§6.1)
            fate = Fate::damaged;
        }
        if (fate == Fate::arrives) {
            if (chance(plan_.duplicate)) ++counters_.duplicated;  // at most once at every level (§6.1)
            return fate;
        }
        if (!reliable) return fate;
        if (attempt == kMaxRetries) {
            ++counters_.given_up;
            return Fate::failed;
        }
        ++counters_.retransmitted;
    }
}

}  // namespace viaduct::paramnet
