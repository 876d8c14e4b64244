// SPDX-License-Identifier: BSD-2-Clause
#include "core/process/process_age.hpp"

#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/shm/fd.hpp"

namespace viaduct {

namespace {

using Text = char[1024];

bool read_text(const char* path, Text* text) {
    const Fd file(above_stdio(::open(path, O_RDONLY | O_CLOEXEC)));
    const ssize_t n = file.valid() ? ::read(file.get(), *text, sizeof *text - 1) : -1;
    (*text)[std::max<ssize_t>(n, 0)] = '\0';
    return n > 0;
}

// What our time namespace adds to the time since boot, and to the start of a process that /proc shows us, in ticks.
int64_t shift_of_namespace(int64_t each_second) {
    Text text;
    if (!read_text("/proc/self/timens_offsets", &text)) return 0;
    long long seconds = 0, nanoseconds = 0;
    const char* const line = std::strstr(text, "boottime");
    if (line == nullptr || std::sscanf(line, "boottime %lld %lld", &seconds, &nanoseconds) != 2) return 0;
    return seconds * each_second + nanoseconds * each_second / 1'000'000'000;
}

}  // namespace

uint64_t boot_ticks() {
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    const int64_t each_second = ::sysconf(_SC_CLK_TCK);
    return static_cast<uint64_t>(now.tv_sec * each_second + now.tv_nsec * each_second / 1'000'000'000 -
                                 shift_of_namespace(each_second));
}

// Field 22 of /proc/PID/stat. The name of the program, which may hold any character, ends at the last parenthesis.
uint64_t started_at(pid_t number) {
    Text text;
    char path[32];
    std::snprintf(path, sizeof path, "/proc/%d/stat", number);
    const char* at = read_text(path, &text) ? std::strrchr(text, ')') : nullptr;
    for (int field = 2; at != nullptr && field < 22; ++field) at = std::strchr(at + 1, ' ');
    if (at == nullptr) return 0;
    return static_cast<uint64_t>(std::strtoll(at, nullptr, 10) - shift_of_namespace(::sysconf(_SC_CLK_TCK)));
}

bool has_ended_since(pid_t number, uint64_t moment) {
    const int saved_errno = errno;
    const bool ended = (::kill(number, 0) != 0 && errno == ESRCH) || started_at(number) > moment;
    errno = saved_errno;
    return ended;
}

}  // namespace viaduct
