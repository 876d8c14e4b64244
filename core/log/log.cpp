// SPDX-License-Identifier: BSD-2-Clause
// One write() per line, of kLineBytes at most (viaduct(7), "The log" in docs/tracing.md). Two atomics hold level and
// destination; no lock, which another thread could hold at a fork. Programs with more rights than their user log
// nothing (secure_getenv).
#include "core/log/log.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/shm/fd.hpp"
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
    return Level::off;  // check_environment() tells a misspelt value
}

// The file that lines go to, in one word: the descriptor in the lower half, what tells its file from others in the
// upper one. That is 0 for standard error, which is the program's to redirect.
constexpr uint64_t kNotOpened = ~uint64_t{0};
std::atomic<uint64_t> kept_destination{kNotOpened};

int descriptor_of(uint64_t destination) { return static_cast<int>(destination & 0xffff'ffff); }

// 0: there is no such descriptor.
uint32_t identity_of(int descriptor) {
    struct stat about {};
    if (::fstat(descriptor, &about) != 0) return 0;
    constexpr uint64_t kGoldenRatio = 0x9e37'79b9'7f4a'7c15;
    const uint64_t mixed = (about.st_ino * kGoldenRatio + about.st_dev) * kGoldenRatio + (about.st_mode & S_IFMT);
    return static_cast<uint32_t>(mixed >> 32) | 1;
}

// The program may close the descriptor in passing (closefrom(3), as daemons do) and be given its number for a file of
// its own.
bool is_still_there(uint64_t destination) {
    const auto identity = static_cast<uint32_t>(destination >> 32);
    return identity == 0 || identity == identity_of(descriptor_of(destination));
}

void say_not_opened(const char* path, int error) {
    char line[kLineBytes];
    const int length = std::snprintf(line, sizeof line,
                                     "viaduct[%d]: VIADUCT_LOG_FILE=%.400s cannot be opened: %s; the log goes to "
                                     "standard error\n",
                                     ::getpid(), path, std::strerror(error));
    if (length > 0) (void)!::write(STDERR_FILENO, line, static_cast<size_t>(length));
}

// `create`: O_CREAT, or 0 to find the file that has been made before: after a chdir() a relative path names another
// one.
uint64_t open_destination(int create) {
    const char* path = ::secure_getenv("VIADUCT_LOG_FILE");
    if (path == nullptr || path[0] == '\0') return STDERR_FILENO;
    // A FIFO may have no reader, or one that does not read: what it does not take is lost.
    const int flags = O_WRONLY | create | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    const int file = above_stdio(::open(path, flags, 0600));
    if (file < 0 && create != 0) say_not_opened(path, errno);
    return file < 0 ? STDERR_FILENO : uint64_t{identity_of(file)} << 32 | static_cast<uint32_t>(file);
}

// Opened once and kept, so that lines reach the file also when no descriptor is free; opened again when the program has
// closed it. Of two threads that open it at once, one closes its own.
int destination() {
    uint64_t known = kept_destination.load(std::memory_order_acquire);
    while (known == kNotOpened || !is_still_there(known)) {
        const uint64_t opened = open_destination(known == kNotOpened ? O_CREAT : 0);
        if (kept_destination.compare_exchange_strong(known, opened, std::memory_order_acq_rel))
            return descriptor_of(opened);
        if (opened != STDERR_FILENO) ::close(descriptor_of(opened));
    }
    return descriptor_of(known);
}

}  // namespace

void check_environment() {
    const char* wanted = ::secure_getenv("VIADUCT_LOG");
    if (wanted == nullptr || *wanted == '\0') return;
    for (const char* known : kNames)
        if (std::strcmp(wanted, known) == 0) return;
    const CancellationHeldOff no_cancellation;
    const int saved_errno = errno;
    char line[256];
    const int length = std::snprintf(line, sizeof line,
                                     "viaduct[%d]: VIADUCT_LOG=%.64s is not one of %s|%s|%s|%s|%s; nothing is logged\n",
                                     ::getpid(), wanted, kNames[0], kNames[1], kNames[2], kNames[3], kNames[4]);
    if (length > 0) (void)!::write(STDERR_FILENO, line, static_cast<size_t>(length));
    errno = saved_errno;
}

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
    const CancellationHeldOff no_cancellation;  // write() is a cancellation point
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
