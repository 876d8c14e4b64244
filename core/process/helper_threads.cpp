// SPDX-License-Identifier: BSD-2-Clause
#include "core/process/helper_threads.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "core/shm/segment.hpp"

namespace viaduct {
namespace {

// Empty: it is not there.
std::string contents_of(const char* file) {
    const Fd fd(::open(file, O_RDONLY | O_CLOEXEC));
    char text[4096];
    const ssize_t n = fd.valid() ? ::read(fd.get(), text, sizeof text) : -1;
    return n > 0 ? std::string(text, static_cast<size_t>(n)) : std::string();
}

// The process is what its first thread is: a zombie once main() has ended and others have not.
bool main_has_ended() {
    const std::string stat = contents_of("/proc/self/stat");
    const size_t name_end = stat.rfind(')');
    return name_end != std::string::npos && stat.compare(name_end, 3, ") Z") == 0;
}

std::string_view field(std::string_view status, std::string_view name) {
    const size_t at = status.find(name);
    if (at == std::string_view::npos) return {};
    std::string_view rest = status.substr(at + name.size());
    rest = rest.substr(0, rest.find('\n'));
    return rest.substr(std::min(rest.find_first_not_of("\t "), rest.size()));
}

// By name and by the signals it blocks: all that can be. Threads of programs that block as many have other names.
bool is_helper(std::string_view status) {
    constexpr std::string_view kNames[] = {"vipl-", "eal-", "dpdk-", "rte_mp", "rte-", "telemetry", "vhost"};
    constexpr uint64_t kAll = 0xFFFFFFFE7FFBFEFF;  // but for SIGKILL, SIGSTOP and those of the C library
    const std::string_view name = field(status, "Name:");
    const std::string blocked(field(status, "SigBlk:"));
    return (std::strtoull(blocked.c_str(), nullptr, 16) & kAll) == kAll &&
           std::any_of(std::begin(kNames), std::end(kNames),
                       [&](std::string_view start) { return name.substr(0, start.size()) == start; });
}

}  // namespace

bool only_helpers_are_left() {
    if (!main_has_ended()) return false;
    const std::unique_ptr<DIR, int (*)(DIR*)> tasks(::opendir("/proc/self/task"), ::closedir);
    if (!tasks) return false;
    const std::string self = std::to_string(::gettid());
    while (const dirent* entry = ::readdir(tasks.get())) {
        if (entry->d_name[0] == '.' || self == entry->d_name) continue;
        const std::string status = contents_of((std::string("/proc/self/task/") + entry->d_name + "/status").c_str());
        const bool zombie = !field(status, "State:").empty() && field(status, "State:")[0] == 'Z';
        if (!status.empty() && !zombie && !is_helper(status)) return false;
    }
    return true;
}

}  // namespace viaduct
