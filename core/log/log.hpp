// SPDX-License-Identifier: BSD-2-Clause
// Logging. Off by default: VIADUCT_LOG=error|warn|info|debug switches it on, VIADUCT_LOG_FILE names the file
// (default standard error). One line per message, one write() per line, safe
// from any thread and in forked children.
#pragma once

#include <string_view>

namespace viaduct::log {

enum class Level : int { off = 0, error, warn, info, debug };

Level level();
inline bool enabled(Level l) { return static_cast<int>(l) <= static_cast<int>(level()); }
void set_level(Level);
// Tells on standard error that VIADUCT_LOG is no level, since silence would be taken for an answer. Once in a process.
void check_environment();

// printf-style on purpose: no allocation, no exceptions, usable anywhere.
void write(Level, const char* component, const char* format, ...) __attribute__((format(printf, 3, 4)));

}  // namespace viaduct::log

#define VIADUCT_LOG(level_, component_, ...)                                               \
    do {                                                                                   \
        if (::viaduct::log::enabled(::viaduct::log::Level::level_)) [[unlikely]]           \
            ::viaduct::log::write(::viaduct::log::Level::level_, component_, __VA_ARGS__); \
    } while (false)
