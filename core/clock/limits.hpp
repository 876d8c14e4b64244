// SPDX-License-Identifier: BSD-2-Clause
// The time limits of the product, in one table (limits.def, shown by docs/limits.md), and the factor that stretches all
// of them: VIADUCT_TIME_FACTOR, a whole number from 1 to 1000, for debuggers, valgrind, slow simulators and busy hosts
// (viaduct(7)). The factor does not change the timeouts that a program passes, settings that have a value, or how often
// something is repeated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace viaduct {

enum class TimeLimit : uint8_t {
#define VIADUCT_LIMIT(name, milliseconds, meaning, page) name,
#define VIADUCT_SETTING_LIMIT(section, key, milliseconds, meaning, page) section##_##key,
#include "core/clock/limits.def"
#undef VIADUCT_LIMIT
#undef VIADUCT_SETTING_LIMIT
};

struct TimeLimitRow {
    const char* section;  // of the setting whose default it is; null: of none
    const char* name;     // of the limit, or the key of the setting
    int64_t ns;           // with a factor of 1
    const char* meaning;
    const char* page;
};

inline constexpr TimeLimitRow kTimeLimits[] = {
#define VIADUCT_LIMIT(name, milliseconds, meaning, page) \
    {nullptr, #name, int64_t{milliseconds} * 1'000'000, meaning, page},
#define VIADUCT_SETTING_LIMIT(section, key, milliseconds, meaning, page) \
    {#section, #key, int64_t{milliseconds} * 1'000'000, meaning, page},
#include "core/clock/limits.def"
#undef VIADUCT_LIMIT
#undef VIADUCT_SETTING_LIMIT
};

inline constexpr const char* kTimeFactorVariable = "VIADUCT_TIME_FACTOR";
inline constexpr int kMostTimeFactor = 1000;

// How long a limit is with a factor of 1, in nanoseconds.
constexpr int64_t unstretched_ns(TimeLimit limit) { return kTimeLimits[static_cast<size_t>(limit)].ns; }

// 1 to kMostTimeFactor. The variable is read once, when the library or program is loaded; after that the call reads one
// word, from any thread, from signal handlers and in forked children. 1 where the variable is not set or wrong (Config
// reports that), and in programs with more rights than their user.
int time_factor();

// How long a limit is, in nanoseconds, with the factor.
inline int64_t limit_ns(TimeLimit limit) { return unstretched_ns(limit) * time_factor(); }

// The number that a text stands for: digits only, 1 to kMostTimeFactor.
std::optional<int> parse_time_factor(std::string_view text);

// The limit that is the default of this setting; null: the factor does not concern it.
const TimeLimitRow* limit_of_setting(std::string_view section, std::string_view key);

}  // namespace viaduct
