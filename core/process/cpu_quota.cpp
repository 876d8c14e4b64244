// SPDX-License-Identifier: BSD-2-Clause
// Reads /proc/self/cgroup and the limit files of each group; see cpu_quota.hpp.
#include "core/process/cpu_quota.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "core/shm/segment.hpp"
#include "core/sync/cancellation.hpp"

namespace viaduct {
namespace {

constexpr size_t kLargest = 64 * 1024;  // most bytes that are read of a file

std::string content(const std::string& path) {
    std::string text;
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.valid()) return text;
    char piece[4096];
    while (text.size() < kLargest) {
        const ssize_t got = ::read(fd.get(), piece, sizeof piece);
        if (got <= 0) break;
        text.append(piece, static_cast<size_t>(got));
    }
    return text;
}

// The limit of one group in processors, 0: none. Version 2: cpu.max has "200000 100000" (quota and period in us) or
// "max 100000". Version 1: quota (-1: none) and period are in two files.
double limit_in(const std::string& folder, bool second_version) {
    double quota = 0, period = 0;
    const bool read = second_version
                          ? std::sscanf(content(folder + "/cpu.max").c_str(), "%lf %lf", &quota, &period) == 2
                          : std::sscanf(content(folder + "/cpu.cfs_quota_us").c_str(), "%lf", &quota) == 1 &&
                                std::sscanf(content(folder + "/cpu.cfs_period_us").c_str(), "%lf", &period) == 1;
    return read && quota > 0 && period > 0 ? quota / period : 0;
}

// Device and inode of the group's folder: CpuQuota::group.
std::string name_of(const std::string& folder) {
    struct stat status = {};
    if (::stat(folder.c_str(), &status) != 0) return {};
    return std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino);
}

// Goes from the group `path` up to the root of the mount, and keeps the smallest limit in `tightest`.
void look(const std::string& mount, std::string path, bool second_version, CpuQuota* tightest) {
    for (;;) {
        const std::string folder = mount + path;
        const double limit = limit_in(folder, second_version);
        if (limit > 0 && (tightest->processors == 0 || limit < tightest->processors)) {
            tightest->processors = limit;
            tightest->group = name_of(folder);
        }
        const size_t slash = path.rfind('/');
        if (path.empty() || slash == std::string::npos) return;
        path.resize(slash);
    }
}

bool lists(std::string_view controllers, std::string_view name) {
    return ("," + std::string(controllers) + ",").find("," + std::string(name) + ",") != std::string::npos;
}

}  // namespace

// `text` has lines "number:controllers:path". The line of version 2 has no controllers. Where both versions are
// mounted, version 2 is in the folder "unified".
CpuQuota cpu_quota_of(std::string_view text, const std::string& root) {
    CpuQuota tightest;
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        const size_t first = line.find(':');
        const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
        if (second == std::string_view::npos) continue;
        const std::string_view controllers = line.substr(first + 1, second - first - 1);
        const std::string path(line.substr(second + 1));
        if (controllers.empty()) {
            look(root, path, true, &tightest);
            look(root + "/unified", path, true, &tightest);
        } else if (lists(controllers, "cpu")) {
            look(root + "/cpu", path, false, &tightest);
        }
    }
    return tightest;
}

CpuQuota own_cpu_quota() {
    const CancellationHeldOff inside_hot_calls;
    return cpu_quota_of(content("/proc/self/cgroup"), "/sys/fs/cgroup");
}

}  // namespace viaduct
