// SPDX-License-Identifier: BSD-2-Clause
// Limits and priorities of a server; see own_limits.hpp.
#include "core/agent/own_limits.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/clock/limits.hpp"
#include "core/process/host_capability.hpp"
#include "core/shm/segment.hpp"

namespace viaduct {

namespace {

// A server that may open fewer serves a few dozen processes.
constexpr rlim_t kEnoughFiles = 1024;
constexpr rlim_t kMostFiles = 1 << 20;
constexpr rlim_t kStackLimit = 8 << 20;

struct Named {
    uint32_t flaw;
    int resource;  // negative: none
    const char* text;
};
constexpr Named kFlaws[] = {
    {kFewFiles, RLIMIT_NOFILE, "few descriptors (ulimit -n)"},
    {kProcessorTime, RLIMIT_CPU, "a limit of processor time (ulimit -t)"},
    {kAddressSpace, RLIMIT_AS, "a limit of address space (ulimit -v)"},
    {kData, RLIMIT_DATA, "a limit of data (ulimit -d)"},
    {kFileSize, RLIMIT_FSIZE, "a limit of file size (ulimit -f)"},
    {kPriority, -1, "a low priority (nice, SCHED_IDLE)"},
    {kFilteredCalls, -1, "forbidden system calls (seccomp)"},
};

void raise(int resource, rlim_t wanted) {
    rlimit l{};
    if (::getrlimit(static_cast<__rlimit_resource_t>(resource), &l) != 0) return;
    const rlimit best{std::max(wanted, l.rlim_max), std::max(wanted, l.rlim_max)};
    if (::setrlimit(static_cast<__rlimit_resource_t>(resource), &best) == 0) return;
    const rlimit allowed{std::min(wanted, l.rlim_max), l.rlim_max};
    ::setrlimit(static_cast<__rlimit_resource_t>(resource), &allowed);
}

bool may_raise_limits() { return has_host_capability(CAP_SYS_RESOURCE); }

bool is_low(const Named& named) {
    rlimit l{};
    if (::getrlimit(static_cast<__rlimit_resource_t>(named.resource), &l) != 0) return false;
    return named.resource == RLIMIT_NOFILE ? l.rlim_max < kEnoughFiles : l.rlim_max != RLIM_INFINITY;
}

bool has_low_priority() {
    const int policy = ::sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
    errno = 0;
    const int nice = ::getpriority(PRIO_PROCESS, 0);
    return policy == SCHED_IDLE || (errno == 0 && nice > 0);
}

// Whether this process, or one that it starts, could have its priority back.
bool may_raise_priority() {
    rlimit l{};  // in it the kernel counts from 20 - nice
    if (::getrlimit(RLIMIT_NICE, &l) == 0 && (l.rlim_cur == RLIM_INFINITY || l.rlim_cur >= 20)) return true;
    return has_host_capability(CAP_SYS_NICE);
}

}  // namespace

void raise_own_limits() {
    for (const int resource : {RLIMIT_AS, RLIMIT_DATA, RLIMIT_CPU, RLIMIT_FSIZE, RLIMIT_NPROC, RLIMIT_SIGPENDING})
        raise(resource, RLIM_INFINITY);
    raise(RLIMIT_NOFILE, kMostFiles);
    rlimit stack{};
    if (::getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur < kStackLimit) raise(RLIMIT_STACK, kStackLimit);
}

void shed_inherited() {
    const sched_param none{};
    if (::sched_getscheduler(0) != SCHED_OTHER) ::sched_setscheduler(0, SCHED_OTHER, &none);
    if (::getpriority(PRIO_PROCESS, 0) != 0) ::setpriority(PRIO_PROCESS, 0, 0);
    ::syscall(SYS_set_mempolicy, 0 /* MPOL_DEFAULT */, nullptr, 0);
    ::prctl(PR_SET_TIMERSLACK, 0);
    if (const Fd order(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC)); order.valid())
        (void)!::write(order.get(), "0", 1);
}

uint32_t own_flaws() {
    uint32_t flaws = 0;
    for (const Named& named : kFlaws) {
        if (named.resource >= 0 && is_low(named)) flaws |= named.flaw;
    }
    if (has_low_priority()) flaws |= kPriority;
    if (::prctl(PR_GET_SECCOMP) > 0) flaws |= kFilteredCalls;
    return flaws;
}

std::string names_of_flaws(uint32_t flaws) {
    std::string text;
    for (const Named& named : kFlaws) {
        if ((flaws & named.flaw) != 0) text += (text.empty() ? "" : ", ") + std::string(named.text);
    }
    return text;
}

uint32_t flaws_of_started_server() {
    constexpr uint32_t kOfLimits = kFewFiles | kProcessorTime | kAddressSpace | kData | kFileSize;
    uint32_t flaws = own_flaws();
    if (may_raise_limits()) flaws &= ~kOfLimits;
    if (may_raise_priority()) flaws &= ~uint32_t{kPriority};
    return flaws;
}

bool could_do_better(uint32_t flaws) {
    if (flaws == 0) return false;
    const uint32_t started = flaws_of_started_server();
    return (started & ~flaws) == 0 && started != flaws;
}

int64_t time_for_a_better_server(uint32_t ended) {
    return flaws_of_started_server() == 0 || could_do_better(ended) ? 0 : limit_ns(TimeLimit::better_server);
}

}  // namespace viaduct
