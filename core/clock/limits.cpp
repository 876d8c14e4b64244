// SPDX-License-Identifier: BSD-2-Clause
#include "core/clock/limits.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>

namespace viaduct {

namespace {

// Every call without a timeout ends within ten seconds (spec/completion 10): what it requests of the agent, the
// resolver first, or an accept, and what it takes to give up.
constexpr int64_t kTenSeconds = 10'000'000'000;
static_assert(unstretched_ns(TimeLimit::agent_call) < kTenSeconds);
static_assert(unstretched_ns(TimeLimit::accept) < kTenSeconds);
static_assert(unstretched_ns(TimeLimit::agent_connect) < unstretched_ns(TimeLimit::agent_call));
static_assert(unstretched_ns(TimeLimit::resolver) < unstretched_ns(TimeLimit::agent_call));
// A look at an agent that does not read waits for longer than this.
static_assert(unstretched_ns(TimeLimit::agent_quick_look) < unstretched_ns(TimeLimit::agent_connect_least));
// CONN_LOST comes within a second of the end of a peer (spec/architecture 7).
static_assert(unstretched_ns(TimeLimit::vipl_conn_lost_delay_ms) <= unstretched_ns(TimeLimit::peer_loss_delay));
static_assert(unstretched_ns(TimeLimit::peer_loss_delay) < 1'000'000'000);

// Constructors of other files may ask before the line below is reached.
constinit std::atomic<int> factor{0};

int read_time_factor() {
    const char* text = ::secure_getenv(kTimeFactorVariable);
    return text == nullptr ? 1 : parse_time_factor(text).value_or(1);
}

[[maybe_unused]] const int read_when_loaded = time_factor();

}  // namespace

int time_factor() {
    int known = factor.load(std::memory_order_relaxed);
    if (known == 0) [[unlikely]] {
        known = read_time_factor();
        factor.store(known, std::memory_order_relaxed);
    }
    return known;
}

std::optional<int> parse_time_factor(std::string_view text) {
    if (text.empty() || text.size() > 4) return std::nullopt;
    int number = 0;
    for (const char c : text) {
        if (c < '0' || c > '9') return std::nullopt;
        number = 10 * number + (c - '0');
    }
    if (number < 1 || number > kMostTimeFactor) return std::nullopt;
    return number;
}

const TimeLimitRow* limit_of_setting(std::string_view section, std::string_view key) {
    const auto* const found = std::find_if(
        std::begin(kTimeLimits), std::end(kTimeLimits),
        [&](const TimeLimitRow& row) { return row.section != nullptr && section == row.section && key == row.name; });
    return found == std::end(kTimeLimits) ? nullptr : found;
}

}  // namespace viaduct
