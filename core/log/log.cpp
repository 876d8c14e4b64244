// SPDX-License-Identifier: BSD-2-Clause
// One write() per line. Two atomics hold level and destination; no lock, which another thread could hold at a fork.
#include "core/log/log.hpp"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/shm/segment.hpp"
#include "core/sync/cancellation.hpp"

namespace viaduct::log {

namespace {

constexpr int kUnknown = -1;
constexpr size_t kLineBytes = 1024;

std::atomic<int> current_level{kUnknown};
constexpr const char* kNames[] = {"off", "error", "warn", "info", "debug"};

Level level_from_environment() {
    const char* wanted = ::secure_getenv("VIADUCT_LOG");
    if (wanted == nullptr) return Level::off;
    for (int i = 0; i <= static_cast<int>(Level::debug); ++i) {
        if (std::strcmp(wanted, kNames[i]) == 0) return static_cast<Level>(i);
    }
    return Level::off;  // a misspelt value is reported by the check of the configuration
}

std::atomic<int> kept_destination{kUnknown};

int open_destination() {
    const char* path = ::secure_getenv("VIADUCT_LOG_FILE");
    if (path == nullptr || path[0] == '\0') return STDERR_FILENO;
    const int file = above_stdio(::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0600));
    return file < 0 ? STDERR_FILENO : file;
}

// Opened once and kept, so that lines reach the file also when no descriptor is free. Of two threads that open it at
// once, one closes its own.
int destination() {
    int known = kept_destination.load(std::memory_order_acquire);
    if (known != kUnknown) return known;
    const int opened = open_destination();
    if (kept_destination.compare_exchange_strong(known, opened, std::memory_order_acq_rel)) return opened;
    if (opened != STDERR_FILENO) ::close(opened);
    return known;
}

}  // namespace

Level level() {
    int known = current_level.load(std::memory_order_relaxed);
    if (known == kUnknown) [[unlikely]] {
        int expected = kUnknown;  // set_level() may have come first
        const int from_environment = static_cast<int>(level_from_environment());
        known = current_level.compare_exchange_strong(expected, from_environment, std::memory_order_relaxed)
                    ? from_environment
                    : expected;
    }
    return static_cast<Level>(known);
}

void set_level(Level l) { current_level.store(static_cast<int>(l), std::memory_order_relaxed); }

void write(Level l, const char* component, const char* format, ...) {
    const CancellationHeldOff inside_hot_calls;
    const int saved_errno = errno;
    timespec t{};
    ::clock_gettime(CLOCK_MONOTONIC, &t);
    char line[kLineBytes];
    const int head = std::snprintf(
        line, sizeof line, "viaduct[%d] %lld.%06ld %s %s: ", static_cast<int>(::getpid()),
        static_cast<long long>(t.tv_sec), t.tv_nsec / 1000, kNames[static_cast<int>(l)], component);
    size_t used = head < 0 ? 0 : static_cast<size_t>(head);
    if (used >= sizeof line) used = sizeof line - 1;

    va_list arguments;
    va_start(arguments, format);
    const int body = std::vsnprintf(line + used, sizeof line - used, format, arguments);
    va_end(arguments);
    if (body > 0) used += static_cast<size_t>(body);
    if (used > sizeof line - 2) used = sizeof line - 2;  // cut, so that the newline always fits
    line[used++] = '\n';

    // A log that cannot be written must not disturb the program, so the result is ignored.
    [[maybe_unused]] const ssize_t written = ::write(destination(), line, used);
    errno = saved_errno;
}

}  // namespace viaduct::log
