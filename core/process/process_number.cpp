// SPDX-License-Identifier: BSD-2-Clause
#include "core/process/process_number.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/shm/segment.hpp"

namespace viaduct {

namespace {

// PIDFD_GET_INFO of Linux 6.13, in its first form; the headers here may be older.
struct PidfdInfo {
    uint64_t mask, cgroup;
    uint32_t pid, tgid, ppid, ids[8], spare;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr unsigned long kGetInfo = _IOWR(0xFF, 11, PidfdInfo);
constexpr uint64_t kInfoPid = 1;

int by_proc(int pidfd) {
    char text[512];
    std::snprintf(text, sizeof text, "/proc/self/fdinfo/%d", pidfd);
    const Fd file(::open(text, O_RDONLY | O_CLOEXEC));
    const ssize_t n = file.valid() ? ::read(file.get(), text, sizeof text - 1) : -1;
    if (n <= 0) return 0;
    text[n] = '\0';
    const char* line = std::strstr(text, "\nPid:");
    const long number = line != nullptr ? std::strtol(line + 5, nullptr, 10) : 0;
    return number > 0 ? static_cast<int>(number) : 0;
}

}  // namespace

int process_number(int pidfd) {
    const int saved_errno = errno;
    PidfdInfo info{};
    info.mask = kInfoPid;
    int number = 0;
    if (::ioctl(pidfd, kGetInfo, &info) == 0) {
        number = static_cast<int>(info.pid);
    } else if (errno != ESRCH) {
        number = by_proc(pidfd);
    }
    errno = saved_errno;
    return number;
}

}  // namespace viaduct
