// SPDX-License-Identifier: BSD-2-Clause
#include "utils/measure/machine.hpp"

#include <sched.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <thread>

namespace viaduct::measure {

namespace {

// One way of a line: 57 ns and 246 ns are what near and far cores of a virtual machine need
// (spec/performance 1).
constexpr double kFarFrom = 120;
constexpr double kRemoteFrom = 600;

std::string processor_model() {
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);) {
        if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
    }
    return "unknown processor";
}

}  // namespace

Distance distance_of(double ns) {
    return ns < kFarFrom ? Distance::near : ns < kRemoteFrom ? Distance::far : Distance::remote;
}

const char* name_of(Distance d) {
    return d == Distance::near ? "near" : d == Distance::far ? "far" : "remote";
}

double thread_seconds() {
    timespec t{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    const size_t middle = values.size() / 2;
    std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(middle), values.end());
    return values[middle];
}

std::string machine_text() {
    utsname system{};
    ::uname(&system);
    return processor_model() + ", " + system.sysname + " " + system.release;
}

std::string date_text() {
    const std::time_t now = std::time(nullptr);
    char date[64];
    std::strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", std::gmtime(&now));
    return date;
}

namespace {
bool pinned_to(int cpu) {
    if (cpu < 0 || cpu >= CPU_SETSIZE) {
        errno = EINVAL;
        return false;
    }
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<size_t>(cpu), &set);
    return ::sched_setaffinity(0, sizeof set, &set) == 0;
}
}  // namespace

void pin_to(int cpu) {
    if (!pinned_to(cpu)) std::perror("cannot pin to a processor");
}

bool may_run_on(int cpu) {
    bool may = false;
    std::thread([&] { may = pinned_to(cpu); }).join();  // of a thread of its own: this one keeps its processors
    return may;
}

}  // namespace viaduct::measure
