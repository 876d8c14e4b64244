// SPDX-License-Identifier: BSD-2-Clause
// See watched_process.hpp.
#include "core/process/watched_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "core/clock/limits.hpp"
#include "core/process/process_age.hpp"

namespace viaduct {

namespace {

// What /proc says of a process: the state of its first thread, and how many threads there are. That thread is a zombie
// when all have ended and the parent has not waited yet; and when main() has called pthread_exit() and others go on.
enum class Threads { unknown, live, others_live, ended };

Threads threads_of(pid_t number) {
    char path[32], text[512] = {};
    std::snprintf(path, sizeof path, "/proc/%d/stat", number);
    const Fd file(above_stdio(::open(path, O_RDONLY | O_CLOEXEC)));
    if (!file.valid()) return Threads::unknown;
    if (::read(file.get(), text, sizeof text - 1) <= 0) return errno == ESRCH ? Threads::ended : Threads::unknown;
    const char* const name_ends = std::strrchr(text, ')');
    char state = 0;
    int count = 0;
    if (name_ends == nullptr || std::sscanf(name_ends,
                                            ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %d",
                                            &state, &count) != 2)
        return Threads::unknown;
    if (state != 'Z' && state != 'X') return Threads::live;
    return count > 1 ? Threads::others_live : Threads::ended;
}

}  // namespace

WatchedProcess::WatchedProcess(pid_t number, uint64_t moment) : number_(number), moment_(moment) { open(); }

// The descriptor before the number: a number that means the same process afterwards meant it when it was opened.
void WatchedProcess::open() {
    pidfd_ = KeptFd(Fd(above_stdio(static_cast<int>(::syscall(SYS_pidfd_open, number_, 0)))));
    ended_ = has_ended_since(number_, moment_);
}

WatchedProcess::State WatchedProcess::state() {
    if (number_ <= 0) return State::unseen;
    if (!ended_ && !pidfd_.is_ours()) open();
    if (ended_) return State::ended;
    if (!pidfd_.valid()) {
        const Threads threads = threads_of(number_);
        ended_ = threads == Threads::ended;
        if (threads == Threads::unknown) return State::unseen;
    } else {
        pollfd one = {pidfd_.get(), POLLIN, 0};
        ended_ = ::poll(&one, 1, 0) > 0 && (one.revents & POLLIN) != 0;
    }
    return ended_ ? State::ended : State::lives;
}

bool WatchedProcess::note_mapping(uint64_t address, size_t bytes) {
    const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    char path[96];
    std::snprintf(path, sizeof path, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, number_, address,
                  address + (bytes + page - 1) / page * page);
    struct stat about {};
    mapping_ = ::lstat(path, &about) == 0 ? path : "";
    missing_since_ = {};
    return !mapping_.empty();
}

// The memory of a process is seen through its first thread: once main() has called pthread_exit() nothing is.
bool WatchedProcess::has_lost_mapping() {
    struct stat about {};
    const bool missing = !mapping_.empty() && ::lstat(mapping_.c_str(), &about) != 0 &&
                         (errno == ENOENT || errno == ESRCH) && threads_of(number_) != Threads::others_live;
    const auto now = std::chrono::steady_clock::now();
    if (!missing) missing_since_ = {};
    if (missing && missing_since_ == decltype(now)()) missing_since_ = now;
    return missing && now - missing_since_ >= std::chrono::nanoseconds(limit_ns(TimeLimit::mapping_missing));
}

}  // namespace viaduct
